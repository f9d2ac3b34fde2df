"""End to end: Parquet in, Parquet without near-duplicates out, against other tools and against copying the file."""
