"""The local search engine: first pass, bands, candidates, verification, clustering."""
