"""Text to signatures and Parquet to deduplicated Parquet, compared with other tools and with reading the file."""
