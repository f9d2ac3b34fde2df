"""Results: verified pairs in; the tables, the report and the files that a user wants out."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise.config import show
from minwise.engines.local import Found
from minwise.engines.publish import check_output, publish
from minwise.errors import ConfigError, MinwiseError
from minwise.formats.sets import SetsSource
from minwise.formats.table import TableSource
from minwise.formats.tables_out import write_tables
from minwise.progress import Progress, Silence
from minwise.stages.band import FAULTY, NOBODY, cut_runs, split
from minwise.stages.cluster import Grouping, PairBlock, group_by_components, group_by_star
from minwise.stages.expand import Expansion

__all__ = ["Clustering", "DedupResult", "cluster_schema", "pair_report", "pair_schema", "pair_tables"]

# Rows of a table that are made, and written, at a time; also the row groups of Parquet files.
TABLE_ROWS = 1 << 16
# Pairs that are put in order at once.
EXPANDED_PAIRS = 1 << 22
# Groups of identical documents that a report names.
SHOWN_GROUPS = 20
# Rows that could not be read that the report of a search, which has no quarantine file, names.
SHOWN_FAULTS = 100
# A corpus from which on one cluster of more than a hundredth of it is worth a warning.
MANY_DOCUMENTS = 1000


def similarity_name(found: Found) -> str:
    """What the column of similarities is called: estimates are not passed off as similarities."""
    return "similarity" if found.settings.verify == "exact" else "similarity_estimate"


class DedupResult:
    """What deduplication found: who is kept, who is removed, and why.

    Attributes:
        threshold: The similarity from which on two documents are near-duplicates.
        report: What happened, in numbers; ready for JSON.
        published: Whether an earlier run on the same work directory had written the output already.
    """

    def __init__(
        self,
        found: Found,
        *,
        threshold: float | None = None,
        progress: Progress | None = None,
        published: bool = False,
        owner: "DedupResult | None" = None,
    ) -> None:
        self._found = found
        self._progress = progress or Silence()
        self._owner = owner
        self.published = published
        self.threshold = found.settings.plan.threshold if threshold is None else threshold
        self._threshold = threshold

    def rethreshold(self, threshold: float) -> "DedupResult":
        """The result of a higher threshold, from the pairs that are known already; nothing is read again.

        The pairs were found with the plan of the lower threshold, so a run with the higher one may miss some of them.
        """
        lowest = self._found.settings.plan.threshold
        if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not lowest <= threshold <= 1:
            raise ConfigError(
                f"threshold must be from {lowest}, that of the run, to 1, got {show(threshold)}; run again"
            )
        return DedupResult(self._found, threshold=float(threshold), progress=self._progress, owner=self)

    def owns(self, work: ExitStack) -> None:
        """Takes over temporary files: they go when the result does."""
        finalize(self, work.close)

    @cached_property
    def _grouping(self) -> Grouping:
        """Who is removed for whom, by document number."""
        found, order = self._found, self._found.order
        documents, protected = len(found.documents), found.documents.protected
        if found.settings.group == "star":
            grouping = group_by_star(self._blocks, found.copies, documents, protected)
        else:
            grouping = _grouping_of_components(found, self._blocks)
        witness = grouping.witness[order.number_of]
        known = witness != NOBODY
        witness[known] = order.document_at[witness[known]]
        return Grouping(grouping.removed[order.number_of], witness, grouping.similarity[order.number_of])

    def _blocks(self) -> Iterator[PairBlock]:
        return self._found.blocks(self._threshold)

    @cached_property
    def keep(self) -> NDArray[np.bool_]:
        """A flag per row of the input, in document order: False for what is removed or could not be read."""
        keep: NDArray[np.bool_] = ~self._grouping.removed & (self._found.documents.states != FAULTY)
        return keep[self._found.documents.protected :]

    @cached_property
    def removed(self) -> pa.Table:
        """Every removed document with the kept one it is a near-duplicate of, and their similarity."""
        return pa.concat_tables(self._removed_tables())

    @cached_property
    def clusters(self) -> pa.Table:
        """Every document with its cluster, named after the kept document, and the cluster's size."""
        return pa.concat_tables(self._cluster_tables())

    @cached_property
    def kept(self) -> pa.Table:
        """The kept documents: the rows of a table with all its columns; id, source, row and text of those in files.

        This holds them in memory; :meth:`write` does not.
        """
        corpus = self._found.documents.corpus
        last = corpus.sources[-1] if len(corpus.sources) > corpus.against else None
        if isinstance(last, (TableSource, SetsSource)):
            return last.kept_table(self.keep)
        return pa.concat_tables(self._kept_tables(), promote_options="permissive")

    def _kept_tables(self) -> Iterator[pa.Table]:
        documents, corpus = self._found.documents, self._found.documents.corpus
        for number in range(corpus.against, len(corpus.sources)):
            start = documents.starts[number]
            keep = self.keep[start - documents.protected : start - documents.protected + documents.rows[number]]
            for batch in corpus.sources[number].batches(corpus.columns, wanted=keep):
                rows = np.flatnonzero(keep[batch.first : batch.first + len(batch)])
                identity = _identity(self._found, start + batch.first + rows)
                texts = batch.texts.take(pa.array(rows)).cast(pa.large_string())
                yield pa.table([*identity, texts], names=["id", "source", "row", "text"])

    def _removed_tables(self) -> Iterator[pa.Table]:
        grouping = self._grouping
        for numbers in _slices(np.flatnonzero(grouping.removed)):
            witnesses = grouping.witness[numbers]
            columns = dict(zip(("id", "source", "row"), _identity(self._found, numbers), strict=True))
            columns |= dict(zip(("kept_id", "kept_source", "kept_row"), _identity(self._found, witnesses), strict=True))
            columns[similarity_name(self._found)] = _similarities(grouping.similarity[numbers])
            yield pa.table(columns)

    @cached_property
    def _heads(self) -> NDArray[np.int64]:
        """The kept document of each document's cluster."""
        numbers = np.arange(len(self._found.documents))
        return np.where(self._grouping.removed, self._grouping.witness, numbers).astype(np.int64)

    @cached_property
    def _sizes(self) -> NDArray[np.int64]:
        """Documents of the input in the cluster of each head, the head itself included."""
        heads = self._heads[self._found.documents.states != FAULTY]
        return np.bincount(heads, minlength=len(self._found.documents))

    def _cluster_tables(self) -> Iterator[pa.Table]:
        documents = self._found.documents
        readable = np.flatnonzero(documents.states != FAULTY)
        for numbers in _slices(readable[readable >= documents.protected]):
            ids, sources, rows = _identity(self._found, numbers)
            heads = self._heads[numbers]
            size = pa.array(self._sizes[heads])
            yield pa.table({"id": ids, "source": sources, "row": rows, "cluster": documents.ids(heads), "size": size})

    @cached_property
    def report(self) -> dict[str, Any]:
        """What happened, in numbers. The same for the same documents and settings."""
        return _Report(self).to_dict()

    def write(self, output: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Writes kept rows, tables and report to a directory that appears whole or not at all.

        Args:
            output: A new or empty directory.
            overwrite: Whether a directory that is not empty may be replaced.
        """
        folder = Path(output)
        corpus = self._found.documents.corpus
        check_output(folder, corpus.sources, overwrite=overwrite)
        report = self.report
        with publish(folder, self._found.work) as staging:
            written = self._copy_kept(staging / "kept")
            if written != report["counts"]["kept"]:
                expected = report["counts"]["kept"]
                raise MinwiseError(f"{expected} rows were to be kept, {written} were written: did the input change?")
            write_tables(staging / "removed.parquet", self._removed_tables(), _removed_schema(self._found))
            write_tables(staging / "clusters.parquet", self._cluster_tables(), _cluster_schema(self._found))
            _write_quarantine(staging / "quarantine.jsonl", self._found)
            (staging / "report.json").write_text(
                json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
            )

    def _copy_kept(self, folder: Path) -> int:
        """Copies the kept rows of several sources at a time; returns how many were written."""
        documents, corpus = self._found.documents, self._found.documents.corpus
        numbers = range(corpus.against, len(corpus.sources))
        folder.mkdir()

        def copy(number: int) -> tuple[int, int]:
            start = documents.starts[number] - documents.protected
            keep = self.keep[start : start + documents.rows[number]]
            return len(keep), corpus.sources[number].copy_kept(keep, folder, corpus.root)

        written = 0
        pool = ThreadPoolExecutor(self._found.limits.writers, thread_name_prefix="minwise-write")
        try:
            with self._progress.stage("write", len(self.keep), "documents") as stage:
                for rows, kept in pool.map(copy, numbers):
                    written += kept
                    stage.advance(rows)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        return written


def _grouping_of_components(found: Found, blocks: Callable[[], Iterator[PairBlock]]) -> Grouping:
    """One kept per connected component: the first in keep order."""
    documents, protected = len(found.documents), found.documents.protected
    first = group_by_components(blocks, found.copies, documents)
    removed = first != np.arange(documents)
    removed[:protected] = False
    witness = np.where(removed, first, NOBODY).astype(np.uint32)
    similarity = np.full(documents, np.nan)
    gone = np.flatnonzero(removed)
    similarity[gone] = _similarities_to_kept(found, witness[gone], gone.astype(np.uint32))
    return Grouping(removed, witness, similarity)


def _similarities_to_kept(found: Found, kept: NDArray[np.uint32], gone: NDArray[np.uint32]) -> NDArray[np.float64]:
    """How similar removed documents are to the kept one of their component, with which none may have compared them."""
    leader = np.arange(len(found.documents), dtype=np.uint32)
    followers, leaders = found.copies.followers()
    leader[followers] = leaders
    left, right = leader[kept], leader[gone]
    similarity = np.ones(len(gone))
    apart = left != right
    if found.settings.verify != "exact":
        similarity[apart] = np.nan
    elif apart.any():
        low, high = np.minimum(left, right)[apart], np.maximum(left, right)[apart]
        similarity[apart] = found.similarities(low, high)
    return similarity


def _slices(numbers: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    return (numbers[start : start + TABLE_ROWS] for start in range(0, max(1, len(numbers)), TABLE_ROWS))


def _identity(found: Found, numbers: NDArray[Any]) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Id, source and row of documents."""
    names, rows = found.documents.locate(numbers)
    return found.documents.ids(numbers), pa.array(names, type=pa.string(), from_pandas=False), pa.array(rows)


def _similarities(values: NDArray[np.float64]) -> pa.Array:
    return pa.array(values, mask=np.isnan(values))


def _removed_schema(found: Found) -> pa.Schema:
    kind = found.documents.id_type
    one = [("id", kind), ("source", pa.string()), ("row", pa.int64())]
    kept = [(f"kept_{name}", type_) for name, type_ in one]
    return pa.schema([*one, *kept, (similarity_name(found), pa.float64())])


def _cluster_schema(found: Found) -> pa.Schema:
    kind = found.documents.id_type
    return pa.schema(
        [("id", kind), ("source", pa.string()), ("row", pa.int64()), ("cluster", kind), ("size", pa.int64())]
    )


def _write_quarantine(path: Path, found: Found) -> None:
    if found.documents.corpus.on_error != "quarantine":
        return
    lines = [json.dumps(fault, ensure_ascii=False) + "\n" for fault in found.documents.faults()]
    if lines:
        path.write_text("".join(lines), encoding="utf-8")


@dataclass(frozen=True)
class _Report:
    """The report of a result."""

    result: DedupResult

    def to_dict(self) -> dict[str, Any]:
        found = self.result._found
        settings = {**found.settings.to_dict(), "threshold": self.result.threshold}
        counts = self._counts()
        return {
            "minwise": _kernel.VERSION,
            "settings": settings,
            "plan": found.settings.plan.to_dict(),
            "counts": counts,
            "clusters": self._clusters(),
            "pairs": {"candidates": found.candidates, "verified": sum(len(block) for block in self.result._blocks())},
            "caps": cap_report(found),
            "sources": self._sources(),
            "unreadable": [fault for fault in found.documents.faults() if fault["row"] is None],
            "duplicate_ids": found.documents.duplicate_ids(),
            "warnings": self._warnings(),
        }

    def _counts(self) -> dict[str, int]:
        found, grouping = self.result._found, self.result._grouping
        counts = found.documents.counts
        removed = int(np.count_nonzero(grouping.removed))
        kept = int(np.count_nonzero(self.result.keep))
        if counts["read"] != kept + removed + counts["quarantined"]:
            raise MinwiseError(f"a bug in minwise, please report it: {counts} but {kept} kept and {removed} removed")
        followers = found.order.document_at[found.copies.followers()[0]]
        identical = int(np.count_nonzero(followers >= found.documents.protected))
        return {**counts, "kept": kept, "removed": removed, "removed_identical": min(identical, removed)}

    def _clusters(self) -> dict[str, int]:
        sizes = self.result._sizes
        several = sizes[sizes > 1]
        return {"of_two_or_more": len(several), "largest": int(sizes.max(initial=0))}

    def _sources(self) -> list[dict[str, Any]]:
        documents, rows = self.result._found.documents, []
        for number, source in enumerate(documents.corpus.sources):
            start, end = documents.starts[number], documents.starts[number + 1]
            faulty = int(np.count_nonzero(documents.states[start:end] == FAULTY))
            row = {"source": source.name, "rows": int(end - start), "quarantined": faulty}
            if number < documents.corpus.against:
                rows.append({**row, "against": True})
            else:
                removed = int(np.count_nonzero(self.result._grouping.removed[start:end]))
                rows.append({**row, "kept": int(end - start) - removed - faulty, "removed": removed})
        return rows

    def _warnings(self) -> list[str]:
        warnings = []
        grouping, documents = self.result._grouping, self.result._found.documents
        chained = int(np.count_nonzero(grouping.similarity[grouping.removed] < self.result.threshold))
        if chained:
            warnings.append(
                f"{chained} removed documents are less similar to the kept one than the threshold; "
                "they were joined through others. --group star removes none of these"
            )
        total, largest = len(documents) - documents.protected, int(self.result._sizes.max(initial=0))
        if total >= MANY_DOCUMENTS and largest > total / 100:
            head = self.result._found.documents.ids(np.array([int(self.result._sizes.argmax())]))[0].as_py()
            warnings.append(f"one cluster holds {largest} of {total} documents, more than 1 %: that of {head}")
        warnings.extend(
            f"{row['source']} loses {row['removed']} of its {row['rows']} documents, more than half"
            for row in self._sources()
            if not row.get("against") and row["rows"] > 1 and row["removed"] > row["rows"] / 2
        )
        return warnings


def pair_tables(found: Found, *, sources: bool = False) -> Iterator[pa.Table]:
    """Every pair, by id, in document order; also those among identical documents."""
    for block in _expanded(found):
        left, right = block.low.astype(np.int64), block.high.astype(np.int64)
        for start in range(0, max(1, len(left)), TABLE_ROWS):
            piece = slice(start, start + TABLE_ROWS)
            yield _pair_table(found, left[piece], right[piece], block.similarity[piece], sources=sources)


def _expanded(found: Found) -> Iterator[PairBlock]:
    """The pairs of all documents, ascending."""
    if not len(found.copies):
        yield from found.blocks()
        return
    if not found.work.has("expanded"):
        _spill_expanded(found)
    pieces = [found.work.open(name) for name in found.work.names("expanded-")]
    runs = [piece.map("pairs") for piece in pieces]
    for slices in cut_runs(runs, EXPANDED_PAIRS):
        pairs = np.concatenate([run[cut] for run, cut in zip(runs, slices, strict=True)])
        similarity = np.concatenate([piece.map("similarity")[cut] for piece, cut in zip(pieces, slices, strict=True)])
        order = np.argsort(pairs)
        yield PairBlock(*split(pairs[order]), similarity[order])


def _spill_expanded(found: Found) -> None:
    """Writes the pairs of all copies in ascending runs."""
    expansion = Expansion(found.copies, len(found.documents), found.settings.max_bucket)
    across = (wide for block in found.blocks() for wide in expansion.across(block, EXPANDED_PAIRS))
    for number, block in enumerate(chain(across, expansion.within(EXPANDED_PAIRS))):
        pairs = block.low.astype(np.uint64) << np.uint64(32) | block.high
        order = np.argsort(pairs)
        found.work.write(f"expanded-{number:06}", {"pairs": pairs[order], "similarity": block.similarity[order]})
    found.work.note("expanded", {})


def pair_report(found: Found) -> dict[str, Any]:
    """What was compared, and what the cap on buckets and on groups of identical documents left out, and where."""
    expansion = Expansion(found.copies, len(found.documents), found.settings.max_bucket)
    capped = expansion.capped()
    across = sum(expansion.left_out_across(block) for block in found.blocks()) if len(capped) else 0
    sizes = expansion.sizes[expansion.counting != expansion.sizes]
    groups = zip(found.documents.ids(capped[:SHOWN_GROUPS]).to_pylist(), sizes[:SHOWN_GROUPS].tolist(), strict=True)
    return {
        "minwise": _kernel.VERSION,
        "settings": found.settings.to_dict(),
        "plan": found.settings.plan.to_dict(),
        "counts": found.documents.counts,
        "candidates": found.candidates,
        "caps": {
            **cap_report(found),
            "identical_groups": len(capped),
            "identical_pairs_left_out": expansion.left_out_within() + across,
            "largest_identical_groups": [{"first": first, "documents": size} for first, size in groups],
        },
        "unreadable": [fault for fault in found.documents.faults() if fault["row"] is None],
        "faults": list(islice(found.documents.faults(), SHOWN_FAULTS)),
    }


def cap_report(found: Found) -> dict[str, Any]:
    """What the cap on buckets left out, and what that may have cost."""
    verified = sum(len(block) for block in found.blocks())
    share = verified / found.candidates if found.candidates else 0.0
    return {
        "max_bucket": found.settings.max_bucket,
        "buckets": found.caps.capped,
        "members": found.caps.capped_members,
        "candidates_left_out": found.caps.left_out,
        "estimated_pairs_missed_at_most": round(found.caps.left_out * share),
        "largest_bucket": found.caps.largest,
    }


def _pair_table(
    found: Found, left: NDArray[np.int64], right: NDArray[np.int64], similarity: NDArray[np.float64], *, sources: bool
) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for name, numbers in (("left", left), ("right", right)):
        columns[name] = found.documents.ids(numbers)
        if sources:
            _, columns[f"{name}_source"], columns[f"{name}_row"] = _identity(found, numbers)
    columns[similarity_name(found)] = _similarities(similarity)
    return pa.table(columns)


def pair_schema(found: Found, *, sources: bool) -> pa.Schema:
    """The columns of the table of pairs."""
    none = np.empty(0, dtype=np.int64)
    return _pair_table(found, none, none, np.empty(0), sources=sources).schema


class Clustering:
    """The clusters of a search, each called after its first document."""

    def __init__(self, found: Found) -> None:
        documents = found.documents
        if found.settings.group == "components":
            heads = group_by_components(found.blocks, found.copies, len(documents))
        else:
            grouping = group_by_star(found.blocks, found.copies, len(documents))
            heads = np.where(grouping.removed, grouping.witness, np.arange(len(documents)))
        self._documents = documents
        self._heads = heads.astype(np.int64)
        self._readable = np.flatnonzero(documents.states != FAULTY)
        self._sizes = np.bincount(self._heads[self._readable], minlength=len(documents))

    @property
    def of_two_or_more(self) -> int:
        """How many clusters have more than one document."""
        return int(np.count_nonzero(self._sizes > 1))

    def tables(self) -> Iterator[pa.Table]:
        """Every document with the id of its cluster's first document and the cluster's size."""
        for numbers in _slices(self._readable):
            heads = self._heads[numbers]
            ids, owners = self._documents.ids(numbers), self._documents.ids(heads)
            yield pa.table({"id": ids, "cluster": owners, "size": pa.array(self._sizes[heads])})


def cluster_schema(found: Found) -> pa.Schema:
    """The columns of the table of clusters."""
    kind = found.documents.id_type
    return pa.schema([("id", kind), ("cluster", kind), ("size", pa.int64())])
