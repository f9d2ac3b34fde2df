"""Results: verified pairs in; the tables, the report and the files that a user wants out."""

from minwise.results.clusters import Clustering
from minwise.results.dedup import DedupResult
from minwise.results.pairs import pair_report, pair_schema, pair_tables

__all__ = ["Clustering", "DedupResult", "pair_report", "pair_schema", "pair_tables"]
