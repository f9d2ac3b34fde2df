"""Locality-sensitive hashing of vectors: pairs within a distance and nearest neighbours."""
