"""From a folder of documents to an opened, searchable corpus."""
