"""Results of a search: tables, reports and output directories, and what can be done with them later."""

from minwise.results.audit import Audit
from minwise.results.dedup import DedupResult
from minwise.results.display import ResultTable
from minwise.results.report_writer import write_report
from minwise.results.restoration import restore

__all__ = ["Audit", "DedupResult", "ResultTable", "restore", "write_report"]
