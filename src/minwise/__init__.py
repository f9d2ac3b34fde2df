"""Near-duplicate detection: pairs, clusters or a clean corpus from documents.

The names here are what most programs need. Everything else is in public modules and packages: :mod:`minwise.api`,
:mod:`minwise.errors`, :mod:`minwise.progress`, :mod:`minwise.text`, :mod:`minwise.sketches`, :mod:`minwise.inputs`,
:mod:`minwise.results`, :mod:`minwise.comparison`, :mod:`minwise.vectors`, :mod:`minwise.index`, :mod:`minwise.spark`,
:mod:`minwise.server` and :mod:`minwise.reference`.

>>> import minwise as mw
>>> sets = mw.Shingler("word:2").shingle(["the cat sat on the mat", "the cat sat on a mat"])
>>> round(mw.jaccard(sets[0], sets[1]), 3)
0.429
>>> signatures = mw.FastSketch(slots=256).sketch(sets)
>>> estimate = signatures.estimate(0, 1)
>>> estimate.low < 3 / 7 < estimate.high
True
"""

import typing as _typing

from minwise import _kernel
from minwise._internal.lazy import lazy_attributes as _lazy_attributes

if _typing.TYPE_CHECKING:
    from minwise.api import audit, clusters, dedup, pairs, rethreshold, write_clusters, write_pairs
    from minwise.comparison.comparison import compare
    from minwise.errors import MinwiseError
    from minwise.index import Index
    from minwise.results.explanation import explain
    from minwise.results.restoration import restore
    from minwise.sketches.estimates import slots_for
    from minwise.sketches.planning import plan
    from minwise.sketches.schemes import FastSketch, MinHash
    from minwise.sketches.similarity import jaccard
    from minwise.text.shingling import Shingler, ShingleSets
    from minwise.vectors.lsh import CosineLSH, EuclideanLSH, HammingSearch

__version__ = _kernel.VERSION

__all__ = [
    "CosineLSH",
    "EuclideanLSH",
    "FastSketch",
    "HammingSearch",
    "Index",
    "MinHash",
    "MinwiseError",
    "ShingleSets",
    "Shingler",
    "audit",
    "clusters",
    "compare",
    "dedup",
    "explain",
    "jaccard",
    "pairs",
    "plan",
    "restore",
    "rethreshold",
    "slots_for",
    "write_clusters",
    "write_pairs",
]

# Modules of the public names. They are imported on first use, so that `import minwise` stays quick.
_MODULES = {
    "CosineLSH": "vectors.lsh",
    "EuclideanLSH": "vectors.lsh",
    "FastSketch": "sketches.schemes",
    "HammingSearch": "vectors.lsh",
    "Index": "index",
    "MinHash": "sketches.schemes",
    "MinwiseError": "errors",
    "ShingleSets": "text.shingling",
    "Shingler": "text.shingling",
    "audit": "api",
    "clusters": "api",
    "compare": "comparison.comparison",
    "dedup": "api",
    "explain": "results.explanation",
    "jaccard": "sketches.similarity",
    "pairs": "api",
    "plan": "sketches.planning",
    "restore": "results.restoration",
    "rethreshold": "api",
    "slots_for": "sketches.estimates",
    "write_clusters": "api",
    "write_pairs": "api",
}

if not _typing.TYPE_CHECKING:  # or a type checker would accept any name
    __getattr__, __dir__ = _lazy_attributes(globals(), _MODULES)
