"""From a folder of documents to an opened, searchable corpus: load, chunk, index, fingerprint, browse.

May import the domain and backends.
"""
