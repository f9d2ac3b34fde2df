"""Locality-sensitive hashing of vectors: pairs within a distance and nearest neighbours."""

from minwise.vectors.lsh import CosineLSH, EuclideanLSH, HammingSearch

__all__ = ["CosineLSH", "EuclideanLSH", "HammingSearch"]
