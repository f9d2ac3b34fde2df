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
from minwise._internal.lazy import import_later as _import_later
from minwise.comparison.comparison import Comparison, compare
from minwise.errors import ConfigError, FormatError, InputError, MinwiseError, MismatchError
from minwise.progress import Progress, Silence
from minwise.sketches.estimates import Estimate, Estimates, slots_for
from minwise.sketches.planning import CurvePoint, Plan, plan, plan_by_area
from minwise.sketches.schemes import FastSketch, MinHash, OnePermutation, Scheme
from minwise.sketches.signatures import Signatures
from minwise.sketches.similarity import (
    RowCounts,
    containment,
    hamming,
    jaccard,
    jaccard_distance,
    row_counts,
    similarities,
)
from minwise.text.shingling import Shingler, ShingleSets, ShingleSpans

if _TYPE_CHECKING:
    from minwise.api import audit, clusters, dedup, dedup_stream, estimate_run, pairs
    from minwise.index import Added, Answer, Damage, Decision, Hit, Index, Listing, StoredDocument
    from minwise.inputs.open_sources import Files
    from minwise.results import DedupResult
    from minwise.results.audit import Audit
    from minwise.results.report_writer import write_report
    from minwise.results.restore import restore
    from minwise.search.run_estimate import RunEstimate
    from minwise.vectors.lsh import CosineLSH, EuclideanLSH

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
    "CosineLSH": "vectors.lsh",
    "DedupResult": "results",
    "EuclideanLSH": "vectors.lsh",
    "Files": "inputs.open_sources",
    "RunEstimate": "search.run_estimate",
    "audit": "api",
    "clusters": "api",
    "dedup": "api",
    "dedup_stream": "api",
    "estimate_run": "api",
    "pairs": "api",
    "restore": "results.restore",
    "write_report": "results.report_writer",
}

__getattr__, __dir__ = _import_later(globals(), _LATER)
