"""minwise finds near-duplicates: documents in; pairs, clusters or a clean corpus out.

>>> import minwise as mw
>>> sets = mw.Shingler("word:2").shingle(["the cat sat on the mat", "the cat sat on a mat"])
>>> round(mw.jaccard(sets[0], sets[1]), 3)
0.429
>>> signatures = mw.FastSketch(slots=256).sketch(sets)
>>> estimate = signatures.estimate(0, 1)
>>> estimate.low < 3 / 7 < estimate.high
True
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from minwise import _kernel
from minwise.compare import Comparison, compare
from minwise.errors import ConfigError, FormatError, InputError, MinwiseError, MismatchError
from minwise.estimate import Estimate, Estimates, slots_for
from minwise.later import import_later as _import_later
from minwise.plan import CurvePoint, Plan, plan, plan_by_area
from minwise.progress import Progress, Silence
from minwise.signatures import Signatures
from minwise.stages.shingle import Shingler, ShingleSets, ShingleSpans
from minwise.stages.sketch import FastSketch, MinHash, OnePermutation, Scheme
from minwise.stages.verify import RowCounts, containment, hamming, jaccard, jaccard_distance, row_counts, similarities

if _TYPE_CHECKING:
    from minwise.dry_run import RunEstimate
    from minwise.formats.gather import Files
    from minwise.index import Added, Answer, Damage, Decision, Hit, Index, Listing, StoredDocument
    from minwise.pipeline import audit, clusters, dedup, dedup_stream, estimate_run, pairs
    from minwise.results import DedupResult
    from minwise.results.audit import Audit
    from minwise.results.report_page import write_report
    from minwise.results.restore import restore
    from minwise.vectors import CosineLSH, EuclideanLSH

__version__ = _kernel.VERSION
UNICODE_VERSION = _kernel.UNICODE_VERSION

__all__ = [
    "UNICODE_VERSION",
    "Added",
    "Answer",
    "Audit",
    "Comparison",
    "ConfigError",
    "CosineLSH",
    "CurvePoint",
    "Damage",
    "Decision",
    "DedupResult",
    "Estimate",
    "Estimates",
    "EuclideanLSH",
    "FastSketch",
    "Files",
    "FormatError",
    "Hit",
    "Index",
    "InputError",
    "Listing",
    "MinHash",
    "MinwiseError",
    "MismatchError",
    "OnePermutation",
    "Plan",
    "Progress",
    "RowCounts",
    "RunEstimate",
    "Scheme",
    "ShingleSets",
    "ShingleSpans",
    "Shingler",
    "Signatures",
    "Silence",
    "StoredDocument",
    "__version__",
    "audit",
    "clusters",
    "compare",
    "containment",
    "dedup",
    "dedup_stream",
    "estimate_run",
    "hamming",
    "jaccard",
    "jaccard_distance",
    "pairs",
    "plan",
    "plan_by_area",
    "restore",
    "row_counts",
    "similarities",
    "slots_for",
    "write_report",
]

# What needs all file formats and the engine comes when it is first asked for: `import minwise` stays quick.
_LATER = {
    "StoredDocument": "index",
    "Index": "index",
    "Hit": "index",
    "Listing": "index",
    "Decision": "index",
    "Damage": "index",
    "Answer": "index",
    "Added": "index",
    "Audit": "results.audit",
    "CosineLSH": "vectors",
    "DedupResult": "results",
    "EuclideanLSH": "vectors",
    "Files": "formats.gather",
    "RunEstimate": "dry_run",
    "audit": "pipeline",
    "clusters": "pipeline",
    "dedup": "pipeline",
    "dedup_stream": "pipeline",
    "estimate_run": "pipeline",
    "pairs": "pipeline",
    "restore": "results.restore",
    "write_report": "results.report_page",
}

__getattr__, __dir__ = _import_later(globals(), _LATER)
