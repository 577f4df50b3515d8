"""Which version of the store's schema this program reads and writes."""

APPLICATION = 0x52745363  # "RtSc" in the file's header says that it is ours
SCHEMA = 8  # steps in migrations.py
