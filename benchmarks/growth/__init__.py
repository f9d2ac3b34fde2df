"""Cost of adding one percent of new documents to a corpus that was deduplicated before."""
