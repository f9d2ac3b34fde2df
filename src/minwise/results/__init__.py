"""Results of a search: tables, reports and output directories, and what can be done with them later."""

from minwise.results.audit import Audit
from minwise.results.dedup import DedupResult
from minwise.results.pairs import Clustering, pair_report, pair_schema, pair_tables
from minwise.results.report_writer import write_report
from minwise.results.restoration import restore

__all__ = ["Audit", "Clustering", "DedupResult", "pair_report", "pair_schema", "pair_tables", "restore", "write_report"]
