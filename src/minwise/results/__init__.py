"""Results of a search: tables, reports and output directories, and what can be done with them later."""

from minwise.results.audit import Audit
from minwise.results.contamination import DecontaminationResult
from minwise.results.contamination_explanation import ContaminationExplanation
from minwise.results.cut_explanation import CutExplanation
from minwise.results.cuts import CutResult
from minwise.results.dedup import DedupResult
from minwise.results.display import ResultTable
from minwise.results.explanation import Explanation, explain
from minwise.results.report_writer import write_report
from minwise.results.restoration import restore
from minwise.results.thresholds import Thresholds

__all__ = [
    "Audit",
    "ContaminationExplanation",
    "CutExplanation",
    "CutResult",
    "DecontaminationResult",
    "DedupResult",
    "Explanation",
    "ResultTable",
    "Thresholds",
    "explain",
    "restore",
    "write_report",
]
