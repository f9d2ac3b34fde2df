"""HTML report of a deduplication run."""
