"""Nearest records beside the sparse brute force of scikit-learn and of sparse_dot_topn."""
