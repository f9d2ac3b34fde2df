"""What an audit must say, worked out by comparing all with all in plain Python."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import pytest

import minwise as mw
from minwise.reference.banding import components
from minwise.results import audit as results
from minwise.search.audit_sample import Seen
from minwise.sketches.estimates import wilson_interval
from support.random_corpora import Pairs, all_pairs


def audited(source: Any, **options: Any) -> tuple[mw.Audit, Seen]:  # noqa: ANN401 - any source and settings
    """An audit, and what it saw."""
    seen: list[Seen] = []
    given = results.summarise

    def noting(what: Seen, *facts: Any, **more: Any) -> mw.Audit:  # noqa: ANN401 - passed on
        seen.append(what)
        return given(what, *facts, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "summarise", noting)
        result = mw.audit(source, **options)
    return result, seen[0]


@dataclass(frozen=True)
class Expected:
    """What an audit of some documents must say, from their sets and from what the bands propose.

    Attributes:
        sets: The shingles of each document.
        contents: What is equal for identical documents.
        candidates: The pairs that `mw.pairs` without verification lists.
        sampled: The documents that are compared with all.
        plan: The plan of the run.
        floor: From where on pairs are looked at.
    """

    sets: list[frozenset[Any]]
    contents: list[Any]
    candidates: set[tuple[int, int]]
    sampled: list[int]
    plan: mw.Plan
    floor: float

    @cached_property
    def distinct(self) -> list[int]:
        """Documents that are not empty and have no identical one before them."""
        first: dict[Any, int] = {}
        for document, content in enumerate(self.contents):
            if self.sets[document]:
                first.setdefault(content, document)
        return sorted(first.values())

    def owner(self, pair: tuple[int, int]) -> int | None:
        """The first of the two that is sampled."""
        return next((one for one in pair if one in self.sampled), None)

    @cached_property
    def pairs(self) -> Pairs:
        """Pairs of distinct documents, at least one of them sampled."""
        known = set(self.distinct)
        every = all_pairs(self.sets, self.floor)
        return {pair: value for pair, value in every.items() if known.issuperset(pair) and self.owner(pair) is not None}

    @cached_property
    def proposed(self) -> list[tuple[int, int]]:
        """Candidates of distinct documents, at least one of them sampled."""
        known = set(self.distinct)
        return [pair for pair in self.candidates if known.issuperset(pair) and self.owner(pair) is not None]

    @cached_property
    def similar(self) -> list[tuple[int, int]]:
        """Pairs that reach the threshold."""
        return [pair for pair, value in self.pairs.items() if value >= self.plan.threshold]

    def recall(self, pairs: Iterable[tuple[int, int]], owners: Iterable[Any] | None = None) -> dict[str, Any]:
        """Of some pairs, those that are proposed; those of an owner count together."""
        listed = list(pairs)
        found = len(self.candidates.intersection(listed))
        return share(found, owners if owners is not None else map(self.owner, listed))

    def promised(self, pairs: Iterable[tuple[int, int]]) -> float | None:
        """The mean of the S-curve."""
        chances = [self.plan.probability(self.pairs[pair]) for pair in pairs]
        return sum(chances) / len(chances) if chances else None

    def with_duplicates(self) -> dict[str, Any]:
        """Sampled documents of a similar pair, and of one that is proposed."""
        cluster = components(self.similar, len(self.sets))
        near = [one for one in self.sampled if any(one in pair for pair in self.similar)]
        found = sum(any(one in pair and pair in self.candidates for pair in self.similar) for one in near)
        return share(found, [cluster[one] for one in near])

    def precision(self) -> dict[str, Any]:
        """Similar ones among what is proposed."""
        return share(len(self.candidates.intersection(self.similar)), map(self.owner, self.proposed))

    def bins(self) -> list[dict[str, Any]]:
        """Recall by steps of 0.05; below the threshold families of pairs at least as similar count together."""
        borders = [round(place * 0.05, 6) for place in range(round(self.floor / 0.05), 21)]
        found = []
        for start, end in pairwise(borders):
            inside = [pair for pair, value in self.pairs.items() if start <= value < end or value == end == 1]
            family = components([pair for pair, value in self.pairs.items() if value >= start], len(self.sets))
            below = end <= self.plan.threshold
            owners = [family[pair[0]] for pair in inside] if below else None
            recall = self.recall(inside, owners)
            found.append({"from": start, "to": end, **recall, "promised": self.promised(inside)})
        return found


def share(found: int, owners: Iterable[Any]) -> dict[str, Any]:
    """A share with its interval: (Σt)² / Σt² trials, t being what each owner has."""
    each = Counter(owners)
    total = sum(each.values())
    if not total:
        return {"found": 0, "of": 0, "value": None, "low": 0.0, "high": 1.0}
    low, high = wilson_interval(found / total, total**2 / sum(count**2 for count in each.values()), 0.95)
    return {"found": found, "of": total, "value": found / total, "low": float(low), "high": float(high)}


def shown(part: dict[str, Any], of: str = "pairs", found: str = "found") -> dict[str, Any]:
    """A share as it is written, under the names that `share` has."""
    rest = {name: part[name] for name in ("value", "low", "high")}
    return {"found": part[found], "of": part[of], **rest}


def assert_figures(result: mw.Audit, seen: Seen, expected: Expected) -> None:
    """Every figure is the expected one."""
    pairs = dict(
        zip(
            zip(seen.pairs.low.tolist(), seen.pairs.high.tolist(), strict=True),
            seen.pairs.similarity.tolist(),
            strict=True,
        )
    )
    assert len(pairs) == len(seen.pairs)  # each once
    assert pairs == expected.pairs
    assert {
        pair for pair, found in zip(pairs, seen.found.tolist(), strict=True) if found
    } == expected.candidates & pairs.keys()
    written = result.to_dict()
    assert json.loads(json.dumps(written)) == written
    assert (written["documents"], written["distinct"]) == (len(expected.sets), len(expected.distinct))
    assert written["identical"] == sum(map(bool, expected.sets)) - len(expected.distinct)
    assert (written["sampled"], written["threshold"]) == (len(expected.sampled), expected.plan.threshold)
    assert written["complete"] == (expected.sampled == expected.distinct)
    assert shown(written["recall"]) == pytest.approx(expected.recall(expected.similar))
    assert written["recall"]["promised"] == pytest.approx(expected.promised(expected.similar))
    assert shown(written["documents_with_duplicates"], "documents") == pytest.approx(expected.with_duplicates())
    assert shown(written["precision"], "candidates", "pairs") == pytest.approx(expected.precision())
    wanted = expected.bins()
    assert len(written["bins"]) == len(wanted)
    for one, other in zip(written["bins"], wanted, strict=True):
        assert {"from": one["from"], "to": one["to"], **shown(one), "promised": one["promised"]} == pytest.approx(other)
    assert_histogram(written, expected)


def assert_histogram(written: dict[str, Any], expected: Expected) -> None:
    """Steps of 0.025 count what was seen; of all documents there is nothing to estimate, else an interval."""
    borders = [round(place * 0.025, 6) for place in range(round(expected.floor / 0.025), 41)]
    assert [(one["from"], one["to"]) for one in written["histogram"]] == list(pairwise(borders))
    for one in written["histogram"]:
        inside = [v for v in expected.pairs.values() if one["from"] <= v < one["to"] or v == one["to"] == 1]
        assert one["pairs"] == len(inside)
        assert one["pairs"] <= one["low"] <= one["estimated"] <= one["high"]
        if written["complete"]:
            assert one["low"] == one["estimated"] == one["high"] == one["pairs"]


def candidates_of(source: Any, **options: Any) -> set[tuple[int, int]]:  # noqa: ANN401 - any source and settings
    """What the bands propose, by number."""
    table = mw.pairs(source, verify="none", sources=True, **options)
    return set(zip(table.column("left_row").to_pylist(), table.column("right_row").to_pylist(), strict=True))
