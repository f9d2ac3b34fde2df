"""Vectors: all pairs within a distance and nearest neighbours, against brute force and other tools."""
