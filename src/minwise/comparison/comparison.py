"""Comparison of two texts: exact similarity, its estimate from signatures, and shared passages."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from minwise.checks import check_path, check_type
from minwise.comparison.passages import Passage, number_shared, passages_from_numbers
from minwise.errors import InputError
from minwise.sketches.estimates import Estimate
from minwise.sketches.planning import Plan
from minwise.sketches.planning import plan as make_plan
from minwise.sketches.schemes import FastSketch, Scheme
from minwise.text.chunks import to_bytes
from minwise.text.shingling import Shingler, ShingleSets

if TYPE_CHECKING:
    from minwise.comparison.alignment import AlignedRow

__all__ = ["Comparison", "compare"]

Spans = list[tuple[int, int]]
Text = str | bytes


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison:
    """Similarity and shared passages of two texts. Positions are code points, or bytes for ``byte`` shingles.

    Attributes:
        similarity: Exact Jaccard similarity of their shingle sets.
        estimate: Estimate from their signatures, with its confidence interval.
        shared: Number of shingles in both texts.
        only_left: Number of shingles in the left text only.
        only_right: Number of shingles in the right text only.
        containment_left: Share of the left text's shingles that the right text also has.
        containment_right: Share of the right text's shingles that the left text also has.
        spans_left: Ranges of the left text that shared shingles cover, as (start, end).
        spans_right: Ranges of the right text that shared shingles cover.
        passages: Shared passages with their positions in both texts, and whether they have moved.
        bands_fired: Bands in which both texts share a bucket in a run under the plan; if empty, such a run misses the
            pair. A run sketches with ``fast`` or ``minhash``; for any other scheme they are the bands of ``fast``.
        plan: Bands, rows and threshold.
        chance: Probability that a pair of this similarity becomes a candidate under the plan.
        shingler: The shingler of both texts.
        texts: The left and the right text.
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
    passages: list[Passage]
    bands_fired: tuple[int, ...]
    plan: Plan
    chance: float
    shingler: Shingler
    texts: tuple[Text, Text]

    def __repr__(self) -> str:
        from minwise._internal.display import text_facts  # lazy, for callers that only compare

        plan, reaches = self.plan, self.similarity >= self.plan.threshold
        facts = [
            ("shingles", f"{self.shared:,} shared, {self.only_left:,} only left, {self.only_right:,} only right"),
            ("passages", f"{len(self.passages):,} shared, {sum(one.moved for one in self.passages):,} of them moved"),
            ("estimate", f"{self.estimate.value:.4f} ({self.estimate.low:.4f} to {self.estimate.high:.4f})"),
            ("candidates", f"{len(self.bands_fired)} of {plan.bands} bands equal; chance {self.chance:.4f}"),
        ]
        verdict = f"{'' if reaches else 'not '}near-duplicates at the threshold {plan.threshold:g}"
        return text_facts(f"Comparison: similarity {self.similarity:.4f}, {verdict}", facts)

    def _repr_html_(self) -> str:
        """Return both texts side by side for a notebook, shortened to the parts around their differences."""
        from minwise.comparison.page import comparison_html  # lazy, for callers that only compare

        return comparison_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without the texts."""
        names = ("similarity", "shared", "only_left", "only_right", "containment_left", "containment_right")
        numbers = {name: getattr(self, name) for name in (*names, "spans_left", "spans_right", "chance")}
        passages = [
            {"left": [left, left_end], "right": [right, right_end], "moved": moved}
            for left, left_end, right, right_end, moved in self.passages
        ]
        return {
            **numbers,
            "estimate": asdict(self.estimate),
            "passages": passages,
            "bands_fired": list(self.bands_fired),
            "plan": self.plan.to_dict(),
        }

    def rows(self, *, max_chars: int | None = None) -> "Iterator[AlignedRow]":
        """Return both texts as aligned rows, each with a list of pieces for the left and the right side.

        A piece has a ``text`` without control characters and a ``kind``: ``shared``, ``moved`` (shared at another
        position), ``only`` (in this text only) or ``gap`` (how much is left out).

        Args:
            max_chars: Approximate number of characters to show of each text, those around the differences. All if not
                given.
        """
        from minwise.comparison.alignment import align_rows, decode_passages  # lazy, for callers that only compare

        in_bytes = self.shingler.kind == "byte"
        return align_rows(*decode_passages(*self.texts, self.passages, in_bytes=in_bytes), max_chars=max_chars)

    def write_html(
        self, path: str | PathLike[str], *, names: tuple[str, str] = ("left", "right"), overwrite: bool = True
    ) -> None:
        """Write a self-contained HTML page that shows both texts side by side.

        Args:
            path: The file; written atomically.
            names: Names of the texts on the page. Default: left and right.
            overwrite: Whether to replace a file with content; if not, the page is kept next to it. Default: True.

        Raises:
            OSError: If the file cannot be written.
        """
        from minwise.comparison.page import write_page  # lazy, for callers that only compare

        write_page(self, check_path("path", path), names, overwrite=overwrite)


def compare(
    left: Text,
    right: Text,
    *,
    shingler: Shingler | None = None,
    scheme: Scheme | None = None,
    plan: Plan | None = None,
) -> Comparison:
    """Compare two texts.

    Args:
        left: A text, or its bytes in UTF-8; any bytes for ``byte`` shingles.
        right: The other text.
        shingler: Cuts the texts into shingles; ``Shingler()`` if not given.
        scheme: Sketch scheme of the estimate; ``FastSketch()`` if not given.
        plan: Bands, rows and threshold of the run that would find or miss the pair; ``plan()`` if not given.

    Returns:
        Similarities, shared passages, and whether the pair would be found.

    Raises:
        InputError: If an argument has a wrong type, or a text is not valid UTF-8.

    >>> import minwise as mw
    >>> result = mw.compare("the cat sat on the mat", "the cat sat on a mat", shingler=mw.Shingler("word:2"))
    >>> result.shared, result.only_left, result.only_right
    (3, 2, 2)
    >>> [(passage.left_start, passage.left_end) for passage in result.passages]
    [(0, 14)]
    """
    shingler = check_type("shingler", shingler or Shingler(), Shingler)
    scheme = check_type("scheme", scheme or FastSketch(), Scheme)
    plan = check_type("plan", plan or make_plan(), Plan)
    sets = [_shingled(shingler, text, name) for text, name in ((left, "the left text"), (right, "the right text"))]
    x, y = (shingles[0] for shingles in sets)
    common = len(np.intersect1d(x, y, assume_unique=True))
    similarity = common / (len(x) + len(y) - common) if common else 0.0
    signatures = [scheme.sketch(shingles) for shingles in sets]
    spans = shingler.spans(left), shingler.spans(right)
    numbers = number_shared(spans[0].hashes, spans[1].hashes)
    return Comparison(
        similarity=similarity,
        estimate=signatures[0].estimate(0, 0, other=signatures[1]),
        shared=common,
        only_left=len(x) - common,
        only_right=len(y) - common,
        containment_left=common / max(len(x), 1),
        containment_right=common / max(len(y), 1),
        spans_left=spans[0].covered_ranges(numbers[0] >= 0),
        spans_right=spans[1].covered_ranges(numbers[1] >= 0),
        passages=passages_from_numbers(*spans, *numbers),
        bands_fired=_bands_fired(sets, scheme, plan),
        plan=plan,
        chance=plan.probability(similarity),
        shingler=shingler,
        texts=(left, right),
    )


def _shingled(shingler: Shingler, text: Text, name: str) -> ShingleSets:
    try:
        return shingler.shingle([to_bytes(text, name)])
    except InputError as error:
        raise InputError(str(error).replace("document 0", name)) from None


def _bands_fired(sets: list[ShingleSets], scheme: Scheme, plan: Plan) -> tuple[int, ...]:
    """Return the bands with equal keys, computed as in a run."""
    from minwise.search.bands import FILLED, Bander, KeyBlock  # lazy, so that importing minwise stays quick
    from minwise.settings import SearchSettings

    kind = scheme.name if scheme.name in ("fast", "minhash") else "fast"
    settings = SearchSettings(plan=plan, shingler=None, scheme=kind, seed=scheme.seed)
    block, bander = KeyBlock.allocate(settings, len(sets)), Bander(settings)
    for shingles in sets:
        bander.band(shingles.to_arrow(), block, 1)
    if (block.states != FILLED).any():
        return ()
    return tuple(np.flatnonzero(block.keys[:, 0] == block.keys[:, 1]).tolist())
