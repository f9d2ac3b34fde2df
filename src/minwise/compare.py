"""Compare: two texts in, how alike they are out, exactly and by their signatures."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minwise.config import check_type
from minwise.errors import InputError
from minwise.estimate import Estimate
from minwise.stages.read import to_bytes
from minwise.stages.shingle import Shingler, ShingleSets
from minwise.stages.sketch import FastSketch, Scheme

__all__ = ["Comparison", "compare"]

Spans = list[tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How alike two texts are.

    Attributes:
        similarity: The exact Jaccard similarity of their shingle sets.
        estimate: What their signatures say, with its interval.
        shared: Shingles in both.
        only_left: Shingles in the left text only.
        only_right: Shingles in the right text only.
        containment_left: The share of the left text's shingles that the right one has too.
        containment_right: The other way round.
        spans_left: Passages of the left text made of shared shingles, as (start, end) code points.
        spans_right: The same for the right text.
    """

    similarity: float
    estimate: Estimate
    shared: int
    only_left: int
    only_right: int
    containment_left: float
    containment_right: float
    spans_left: Spans
    spans_right: Spans

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and dictionaries, ready for JSON."""
        return asdict(self)


def compare(
    left: str | bytes, right: str | bytes, *, shingler: Shingler | None = None, scheme: Scheme | None = None
) -> Comparison:
    """Compares two texts.

    >>> import minwise as mw
    >>> result = mw.compare("the cat sat on the mat", "the cat sat on a mat", shingler=mw.Shingler("word:2"))
    >>> result.shared, result.only_left, result.only_right
    (3, 2, 2)
    """
    shingler = check_type("shingler", shingler or Shingler(), Shingler)
    scheme = check_type("scheme", scheme or FastSketch(), Scheme)
    sets = [_shingled(shingler, text, name) for text, name in ((left, "the left text"), (right, "the right text"))]
    x, y = (one[0] for one in sets)
    common = np.intersect1d(x, y, assume_unique=True)
    signatures = [scheme.sketch(one) for one in sets]
    return Comparison(
        similarity=len(common) / (len(x) + len(y) - len(common)) if len(common) else 0.0,
        estimate=signatures[0].estimate(0, 0, other=signatures[1]),
        shared=len(common),
        only_left=len(x) - len(common),
        only_right=len(y) - len(common),
        containment_left=len(common) / max(len(x), 1),
        containment_right=len(common) / max(len(y), 1),
        spans_left=_shared_passages(shingler, left, common),
        spans_right=_shared_passages(shingler, right, common),
    )


def _shingled(shingler: Shingler, text: str | bytes, name: str) -> ShingleSets:
    try:
        return shingler.shingle([to_bytes(text, name)])
    except InputError as error:
        raise InputError(str(error).replace("document 0", name)) from None


def _shared_passages(shingler: Shingler, text: str | bytes, common: NDArray[np.uint64]) -> Spans:
    """The maximal runs of overlapping or touching shared shingles."""
    spans = shingler.spans(text)
    shared = np.isin(spans.hashes, common)
    starts, ends = spans.starts[shared], spans.ends[shared]
    gaps = np.flatnonzero(starts[1:] > ends[:-1])
    firsts, lasts = np.concatenate([[0], gaps + 1]), np.concatenate([gaps, [len(ends) - 1]])
    if not len(starts):
        return []
    return list(zip(starts[firsts].tolist(), ends[lasts].tolist(), strict=True))
