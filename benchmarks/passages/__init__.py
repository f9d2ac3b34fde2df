"""Speed and memory of repeated passages, compared with dedup and with a suffix array."""
