"""Compare: two texts in, how alike they are out, exactly and by their signatures, and what they share."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from minwise.checks import check_path, check_type
from minwise.comparison.passages import Passage, number_shared, passages_of
from minwise.errors import InputError
from minwise.sketches.estimates import Estimate
from minwise.sketches.planning import Plan
from minwise.sketches.planning import plan as make_plan
from minwise.sketches.schemes import FastSketch, Scheme
from minwise.text.chunks import to_bytes
from minwise.text.shingling import Shingler, ShingleSets

if TYPE_CHECKING:
    from minwise.comparison.alignment import Beside

__all__ = ["Comparison", "compare"]

Spans = list[tuple[int, int]]
Text = str | bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How alike two texts are, and what they share. Places are code points, or bytes for ``byte`` shingles.

    Attributes:
        similarity: The exact Jaccard similarity of their shingle sets.
        estimate: What their signatures say, with its interval.
        shared: Shingles in both.
        only_left: Shingles in the left text only.
        only_right: Shingles in the right text only.
        containment_left: The share of the left text's shingles that the right one has too.
        containment_right: The other way round.
        spans_left: Passages of the left text made of shared shingles, as (start, end).
        spans_right: The same for the right text.
        passages: The same, place by place: what stands where in both texts, and whether it has moved.
        bands_fired: The bands in which both texts would be in one bucket of a run under the plan; none, and the run
            does not find them. A run sketches with ``fast`` or ``minhash``; under another scheme they are those of
            ``fast``.
        plan: Bands, rows and threshold.
        chance: How likely a pair of this similarity is found under the plan.
        shingler: How the texts were cut.
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
    texts: tuple[Text, Text] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and dictionaries, ready for JSON; without the texts."""
        as_they_are = ("similarity", "shared", "only_left", "only_right", "containment_left", "containment_right")
        numbers = {name: getattr(self, name) for name in (*as_they_are, "spans_left", "spans_right", "chance")}
        passages = [
            {"left": [one.left_start, one.left_end], "right": [one.right_start, one.right_end], "moved": one.moved}
            for one in self.passages
        ]
        return {
            **numbers,
            "estimate": asdict(self.estimate),
            "passages": passages,
            "bands_fired": list(self.bands_fired),
            "plan": self.plan.to_dict(),
        }

    def rows(self, *, most: int | None = None) -> "Iterator[Beside]":
        """Both texts in rows that put beside each other what belongs together; each side is a list of pieces.

        A piece has a ``text`` without control characters and a ``kind``: ``shared``, ``moved`` (shared, at another
        place), ``only`` (in this text only) or ``gap`` (how much is left out).

        Args:
            most: Characters to show of either text, about: those around the differences. All of them if not given.
        """
        from minwise.comparison.alignment import beside
        from minwise.comparison.display_text import readable_passages  # here, because few who compare also look

        in_bytes = self.shingler.kind == "byte"
        return beside(*readable_passages(*self.texts, self.passages, in_bytes=in_bytes), most=most)

    def write_html(self, path: str | PathLike[str], *, names: tuple[str, str] = ("left", "right")) -> None:
        """Writes a page that shows both texts side by side, into one file that needs nothing else.

        Args:
            path: The file, which appears whole or not at all; one that exists is replaced.
            names: What the texts are called.
        """
        from minwise.comparison.page import write_page  # here, because few who compare also look

        write_page(self, check_path("path", path), names)


def compare(
    left: Text,
    right: Text,
    *,
    shingler: Shingler | None = None,
    scheme: Scheme | None = None,
    plan: Plan | None = None,
) -> Comparison:
    """Compares two texts.

    Args:
        left: A text, or bytes: UTF-8, or any for ``byte`` shingles.
        right: The other.
        shingler: How texts are cut; ``Shingler()`` if not given.
        scheme: How they are sketched for the estimate; ``FastSketch()`` if not given.
        plan: Under which plan they would be found or missed; ``plan()`` if not given.

    >>> import minwise as mw
    >>> result = mw.compare("the cat sat on the mat", "the cat sat on a mat", shingler=mw.Shingler("word:2"))
    >>> result.shared, result.only_left, result.only_right
    (3, 2, 2)
    >>> [(one.left_start, one.left_end) for one in result.passages]
    [(0, 14)]
    """
    shingler = check_type("shingler", shingler or Shingler(), Shingler)
    scheme = check_type("scheme", scheme or FastSketch(), Scheme)
    plan = check_type("plan", plan or make_plan(), Plan)
    sets = [_shingled(shingler, text, name) for text, name in ((left, "the left text"), (right, "the right text"))]
    x, y = (one[0] for one in sets)
    common = len(np.intersect1d(x, y, assume_unique=True))
    similarity = common / (len(x) + len(y) - common) if common else 0.0
    signatures = [scheme.sketch(one) for one in sets]
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
        spans_left=spans[0].covered(numbers[0] >= 0),
        spans_right=spans[1].covered(numbers[1] >= 0),
        passages=passages_of(*spans, *numbers),
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
    """The bands whose keys are equal, made as a run makes them."""
    from minwise.search.bands import FILLED, Bander, KeyBlock  # here, because importing minwise should stay quick
    from minwise.settings import FindSettings

    kind = scheme.name if scheme.name in ("fast", "minhash") else "fast"
    settings = FindSettings(plan=plan, shingler=None, scheme=kind, seed=scheme.seed)
    block, bander = KeyBlock.of(settings, len(sets)), Bander(settings)
    for one in sets:
        bander.band(one.to_arrow(), block, 1)
    if (block.states != FILLED).any():
        return ()
    return tuple(np.flatnonzero(block.keys[:, 0] == block.keys[:, 1]).tolist())
