"""Scale: one run of `minwise dedup` on millions of made-up documents, its time, its memory and its answer."""
