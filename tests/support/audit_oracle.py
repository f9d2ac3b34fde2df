"""Expected figures of an audit, from comparing all documents in plain Python."""

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
from minwise.results import Audit
from minwise.results import audit as audit_module
from minwise.search.audit_sample import AuditSample
from minwise.sketches import Plan
from minwise.sketches.estimates import wilson_interval
from support.random_corpora import Pairs, all_pairs


def audited(source: Any, **options: Any) -> tuple[Audit, AuditSample]:  # noqa: ANN401 - any source and settings
    """Run an audit; return its result and its sample."""
    samples: list[AuditSample] = []
    summarise = audit_module.summarise_audit

    def record_sample(sample: AuditSample, *args: Any, **kwargs: Any) -> Audit:  # noqa: ANN401 - passed on
        samples.append(sample)
        return summarise(sample, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit_module, "summarise_audit", record_sample)
        result = mw.audit(source, **options)
    return result, samples[0]


@dataclass(frozen=True)
class Expected:
    """Expected figures of an audit, from the sets of its documents and the candidates of the bands.

    Attributes:
        sets: The shingles of each document.
        contents: A value per document that is equal for identical documents.
        candidates: The pairs that `mw.pairs` without verification lists.
        sampled: The documents that are compared with all others.
        plan: The plan of the run.
        floor: Minimum similarity of the pairs that are counted.
    """

    sets: list[frozenset[Any]]
    contents: list[Any]
    candidates: set[tuple[int, int]]
    sampled: list[int]
    plan: Plan
    floor: float

    @cached_property
    def distinct(self) -> list[int]:
        """Documents that are not empty and not identical to an earlier one."""
        first: dict[Any, int] = {}
        for document, content in enumerate(self.contents):
            if self.sets[document]:
                first.setdefault(content, document)
        return sorted(first.values())

    def owner(self, pair: tuple[int, int]) -> int | None:
        """Return the first of the two that is sampled."""
        return next((document for document in pair if document in self.sampled), None)

    @cached_property
    def pairs(self) -> Pairs:
        """Pairs of distinct documents, at least one of them sampled."""
        known = set(self.distinct)
        pairs = all_pairs(self.sets, self.floor)
        return {pair: value for pair, value in pairs.items() if known.issuperset(pair) and self.owner(pair) is not None}

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
        """Return the share of pairs that are proposed; those of an owner are one trial."""
        listed = list(pairs)
        found = len(self.candidates.intersection(listed))
        return share(found, owners if owners is not None else map(self.owner, listed))

    def promised(self, pairs: Iterable[tuple[int, int]]) -> float | None:
        """Return the mean of the S-curve."""
        chances = [self.plan.probability(self.pairs[pair]) for pair in pairs]
        return sum(chances) / len(chances) if chances else None

    def with_duplicates(self) -> dict[str, Any]:
        """Return the share of sampled documents in a similar pair that are in a proposed one."""
        cluster = components(self.similar, len(self.sets))
        near = [document for document in self.sampled if any(document in pair for pair in self.similar)]
        found = sum(any(document in pair and pair in self.candidates for pair in self.similar) for document in near)
        return share(found, [cluster[document] for document in near])

    def precision(self) -> dict[str, Any]:
        """Return the share of candidates that are similar."""
        return share(len(self.candidates.intersection(self.similar)), map(self.owner, self.proposed))

    def bins(self) -> list[dict[str, Any]]:
        """Return recall in bins of 0.05; below the threshold, a component of pairs at least as similar is one trial."""
        borders = [round(number * 0.05, 6) for number in range(round(self.floor / 0.05), 21)]
        bins = []
        for start, end in pairwise(borders):
            inside = [pair for pair, value in self.pairs.items() if start <= value < end or value == end == 1]
            family = components([pair for pair, value in self.pairs.items() if value >= start], len(self.sets))
            below = end <= self.plan.threshold
            owners = [family[pair[0]] for pair in inside] if below else None
            recall = self.recall(inside, owners)
            bins.append({"from": start, "to": end, **recall, "promised": self.promised(inside)})
        return bins


def share(found: int, owners: Iterable[Any]) -> dict[str, Any]:
    """Return a share with its interval for (Σt)² / Σt² trials, where t is the number of each owner."""
    each = Counter(owners)
    total = sum(each.values())
    if not total:
        return {"found": 0, "of": 0, "value": None, "low": 0.0, "high": 1.0}
    low, high = wilson_interval(found / total, total**2 / sum(count**2 for count in each.values()), 0.95)
    return {"found": found, "of": total, "value": found / total, "low": float(low), "high": float(high)}


def shown(part: dict[str, Any], of: str = "pairs", found: str = "found") -> dict[str, Any]:
    """Return a share of the JSON file under the names that `share` uses."""
    rest = {name: part[name] for name in ("value", "low", "high")}
    return {"found": part[found], "of": part[of], **rest}


def assert_figures(result: Audit, sample: AuditSample, expected: Expected) -> None:
    """Assert that every figure is the expected one."""
    pairs = dict(
        zip(
            zip(sample.pairs.low.tolist(), sample.pairs.high.tolist(), strict=True),
            sample.pairs.similarity.tolist(),
            strict=True,
        )
    )
    assert len(pairs) == len(sample.pairs)  # each once
    assert pairs == expected.pairs
    assert {
        pair for pair, found in zip(pairs, sample.found.tolist(), strict=True) if found
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
    bins = expected.bins()
    assert len(written["bins"]) == len(bins)
    for given, correct in zip(written["bins"], bins, strict=True):
        figures = {"from": given["from"], "to": given["to"], **shown(given), "promised": given["promised"]}
        assert figures == pytest.approx(correct)
    assert_histogram(written, expected)


def assert_histogram(written: dict[str, Any], expected: Expected) -> None:
    """Assert counts in bins of 0.025; estimates are exact if all documents are sampled, otherwise in their interval."""
    borders = [round(number * 0.025, 6) for number in range(round(expected.floor / 0.025), 41)]
    assert [(entry["from"], entry["to"]) for entry in written["histogram"]] == list(pairwise(borders))
    for entry in written["histogram"]:
        start, end = entry["from"], entry["to"]
        inside = [value for value in expected.pairs.values() if start <= value < end or value == end == 1]
        assert entry["pairs"] == len(inside)
        assert entry["pairs"] <= entry["low"] <= entry["estimated"] <= entry["high"]
        if written["complete"]:
            assert entry["low"] == entry["estimated"] == entry["high"] == entry["pairs"]


def candidates_of(source: Any, **options: Any) -> set[tuple[int, int]]:  # noqa: ANN401 - any source and settings
    """Return the candidates of the bands, by document number."""
    table = mw.pairs(source, verify="none", sources=True, **options)
    return set(zip(table.column("left_row").to_pylist(), table.column("right_row").to_pylist(), strict=True))
