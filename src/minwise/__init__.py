"""minwise finds near-duplicates: shingles, sketches, estimates, exact comparison.

>>> import minwise as mw
>>> sets = mw.Shingler("word:2").shingle(["the cat sat on the mat", "the cat sat on a mat"])
>>> round(mw.jaccard(sets[0], sets[1]), 3)
0.429
>>> signatures = mw.FastSketch(slots=256).sketch(sets)
>>> estimate = signatures.estimate(0, 1)
>>> estimate.low < 3 / 7 < estimate.high
True
"""

from minwise import _kernel
from minwise.compare import Comparison, compare
from minwise.errors import ConfigError, FormatError, InputError, MinwiseError, MismatchError
from minwise.estimate import Estimate, Estimates, slots_for
from minwise.signatures import Signatures
from minwise.stages.shingle import Shingler, ShingleSets, ShingleSpans
from minwise.stages.sketch import FastSketch, MinHash, OnePermutation, Scheme
from minwise.stages.verify import RowCounts, containment, hamming, jaccard, jaccard_distance, row_counts, similarities

__version__ = _kernel.VERSION
UNICODE_VERSION = _kernel.UNICODE_VERSION

__all__ = [
    "UNICODE_VERSION",
    "Comparison",
    "ConfigError",
    "Estimate",
    "Estimates",
    "FastSketch",
    "FormatError",
    "InputError",
    "MinHash",
    "MinwiseError",
    "MismatchError",
    "OnePermutation",
    "RowCounts",
    "Scheme",
    "ShingleSets",
    "ShingleSpans",
    "Shingler",
    "Signatures",
    "__version__",
    "compare",
    "containment",
    "hamming",
    "jaccard",
    "jaccard_distance",
    "row_counts",
    "similarities",
    "slots_for",
]
