"""Data built once for a corpus so that some routes can search it differently."""
