"""Stages of `minwise dedup` compared with lower bounds of their work on the same machine."""
