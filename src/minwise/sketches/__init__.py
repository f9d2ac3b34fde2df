"""Sketches: schemes, signatures, similarity estimates and LSH planning."""
