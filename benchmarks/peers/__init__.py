"""Peers: text to signatures and Parquet to deduplicated Parquet, beside other tools and beside reading the file."""
