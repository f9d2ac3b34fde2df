"""Helpers that every part of minwise shares; not part of the public API."""
