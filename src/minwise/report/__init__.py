"""The HTML report of a deduplication run."""
