"""Which version of the store's schema this program reads and writes."""

APPLICATION = 0x52745363  # "RtSc" in the file's header says that it is ours
NAMESPACE = "routescope"  # the PostgreSQL schema that holds the tables
WRITING, MIGRATING = 0x52745377, 0x52745363  # keys of PostgreSQL's advisory locks
SCHEMA = 8  # steps in migrations.py
