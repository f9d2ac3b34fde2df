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

from minwise._internal.lazy import lazy_attributes as _lazy_attributes

if _typing.TYPE_CHECKING:
    from minwise._kernel import __version__ as __version__
    from minwise.api import (
        audit,
        clusters,
        decontaminate,
        dedup,
        nearest,
        pairs,
        passages,
        rethreshold,
        write_clusters,
        write_pairs,
        write_passages,
    )
    from minwise.comparison.comparison import compare
    from minwise.errors import MinwiseError
    from minwise.index import Index
    from minwise.results.explanation import explain
    from minwise.results.restoration import restore
    from minwise.sketches.planning import plan
    from minwise.sketches.schemes import FastSketch, MinHash
    from minwise.sketches.similarity import jaccard
    from minwise.text.shingling import Shingler, ShingleSets
    from minwise.vectors.lsh import CosineLSH, EuclideanLSH, HammingSearch

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
    "decontaminate",
    "dedup",
    "explain",
    "jaccard",
    "nearest",
    "pairs",
    "passages",
    "plan",
    "restore",
    "rethreshold",
    "write_clusters",
    "write_pairs",
    "write_passages",
]

# Modules of the public names. They are imported on first use, so that `import minwise` stays quick: the kernel imports
# NumPy, which takes a sixth of a second.
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
    "decontaminate": "api",
    "dedup": "api",
    "explain": "results.explanation",
    "jaccard": "sketches.similarity",
    "nearest": "api",
    "pairs": "api",
    "passages": "api",
    "plan": "sketches.planning",
    "restore": "results.restoration",
    "rethreshold": "api",
    "write_clusters": "api",
    "write_pairs": "api",
    "write_passages": "api",
    "__version__": "_kernel",
}

if not _typing.TYPE_CHECKING:  # or a type checker would accept any name
    __getattr__, __dir__ = _lazy_attributes(globals(), _MODULES)
