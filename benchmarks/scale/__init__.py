"""Time, memory and result of `minwise dedup` on millions of synthetic documents."""
