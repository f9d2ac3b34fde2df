"""Results of a search: tables, reports and output directories."""

from minwise.results.dedup import DedupResult
from minwise.results.pairs import Clustering, pair_report, pair_schema, pair_tables

__all__ = ["Clustering", "DedupResult", "pair_report", "pair_schema", "pair_tables"]
