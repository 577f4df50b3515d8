"""One source cut in several ways, measured on the same labelled text."""
