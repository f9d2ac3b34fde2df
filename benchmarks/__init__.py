"""Benchmarks of speed (`peers`, `speed`, `scale` and others) and of result quality (`quality`)."""
