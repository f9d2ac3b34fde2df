"""Bounds: each stage of `minwise dedup` beside the least that its machine would need for it."""
