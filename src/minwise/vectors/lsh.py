"""Vectors: points in, all pairs within a distance or the nearest of a query out; by hashing, then verified exactly.

The recall is stated: whoever is at the radius of the plan is found with the planned probability, whoever is nearer with
a higher one. What is found is exact. In hundreds of dimensions without structure, hashing has to look at a good part of
all vectors; where the ten nearest are wanted at any price, an index that follows a graph is the better choice.
"""

import math
from contextlib import ExitStack
from os import PathLike
from typing import Any, TypeVar, overload

import pyarrow as pa

from minwise import _kernel
from minwise.checks import check_on_error, check_seed, check_whole, show
from minwise.errors import ConfigError, InputError, MismatchError
from minwise.inputs.source import Columns
from minwise.inputs.table_writer import table_file, write_tables
from minwise.progress import Progress, Silence
from minwise.results.output import refuse_inputs
from minwise.results.pairs import pair_report, pair_schema, pair_tables
from minwise.search.documents import Corpus
from minwise.search.workdir import Work, choose_work
from minwise.settings import Limits
from minwise.sketches.planning import Plan
from minwise.vectors.nearest import SCHEMA, Faults, NearSearch
from minwise.vectors.pairs import find_pairs
from minwise.vectors.planning import Sample, cheapest_layout, neighbour_radius
from minwise.vectors.projection import VectorSettings, chance_to_share, slot_chance
from minwise.vectors.sources import VectorSource, open_vectors

__all__ = ["CosineLSH", "EuclideanLSH"]

AnyPath = str | PathLike[str]
AnyVectors = Any
LSH = TypeVar("LSH", bound="_VectorLSH")
# What a radius of 0 is planned as: no line can be cut into pieces of no width.
LEAST_RADIUS = math.ulp(1.0)


class _VectorLSH:
    """Finds vectors near each other by random lines; what a line tells of a vector is left to the two families."""

    measure: str
    width: float | None = None

    def __init__(self, *, hashes: int, tables: int, seed: int = 1) -> None:
        self.hashes = check_whole("hashes", hashes, 1, 1024)
        self.tables = check_whole("tables", tables, 1, 4096)
        self.seed = check_seed("seed", seed)
        Plan(threshold=1.0, bands=self.tables, rows=self.hashes)  # refuses more lines than there can be
        self.planned_radius: float | None = None
        self._source: VectorSource | None = None
        self._near: tuple[Limits, NearSearch] | None = None

    def __repr__(self) -> str:
        names = ("width", "hashes", "tables", "seed")
        settings = (f"{name}={value!r}" for name in names if (value := getattr(self, name)) is not None)
        return f"{type(self).__name__}({', '.join(settings)})"

    @classmethod
    def plan(
        cls: type[LSH],
        vectors: AnyVectors,
        *,
        radius: float | None = None,
        top: int | None = None,
        queries: AnyVectors = None,
        recall: float = 0.99,
        seed: int = 1,
        max_bucket: int = 2000,
        column: str | None = None,
    ) -> LSH:
        """The layout that finds a pair at ``radius`` with probability ``recall`` at least cost.

        Args:
            vectors: What is to be searched, as :meth:`fit` takes it. 1,024 rows of it are compared with each other.
            radius: The distance up to which pairs are wanted.
            top: Instead of a radius: how many neighbours are wanted. The radius is then a distance within which nine of
                ten vectors have as many, told from a sample.
            queries: What will be asked, if :meth:`query` is what is planned for; else all pairs are.
            recall: The wanted chance to find a pair at the radius.
            seed: Seed of the lines.
            max_bucket: The cap of :meth:`pairs`, which the plan stays below if it can.
            column: The column of a Parquet file.
        """
        source = open_vectors(vectors, column)
        asking = None if queries is None else open_vectors(_as_rows(queries), column)
        share = _number("recall", recall)
        if not 0.0 < share < 1.0:
            raise ConfigError(f"recall must be above 0 and below 1, got {show(recall)}")
        if (radius is None) == (top is None):
            raise ConfigError(f"a plan takes either radius or top, got {show(radius)} and {show(top)}")
        if top is not None:
            most = check_whole("top", top, 1, 2**31)
            wanted = neighbour_radius(source, asking, most, cls.measure) or LEAST_RADIUS
        else:
            wanted = _radius(radius, cls.measure)
        reach = wanted or LEAST_RADIUS
        sample = Sample.of(source, cls.measure, reach)
        count = None if asking is None else asking.rows
        layout = cheapest_layout(sample, cls.measure, reach, share, max_bucket, count)
        planned = cls(**layout.settings, seed=seed)
        planned.planned_radius = wanted
        return planned

    def chance(self, distance: float) -> float:
        """The probability that two vectors at a distance share a bucket, and so are found if they are wanted."""
        apart = _radius(distance, self.measure)
        return chance_to_share(slot_chance(self.measure, apart, self.width), self.hashes, self.tables)

    def fit(self: LSH, vectors: AnyVectors, *, column: str | None = None) -> LSH:
        """Takes the vectors that :meth:`pairs` and :meth:`query` look at; a file stays where it is.

        Args:
            vectors: A matrix with a row per vector, a list of rows, an Arrow column of lists, or the path of an .npy or
                .parquet file. float32 and uint8 as they are; float64, float16, int8 and int16 as float32.
            column: The column of a Parquet file; needed if more than one has lists of numbers.
        """
        self._source = open_vectors(vectors, column)
        self._near = None
        return self

    @property
    def _fitted(self) -> VectorSource:
        if self._source is None:
            raise InputError("there are no vectors yet; call fit first")
        return self._source

    def _settings(self, radius: float, max_bucket: int = 2000) -> VectorSettings:
        return VectorSettings(
            plan=Plan(threshold=1.0, bands=self.tables, rows=self.hashes),
            shingler=None,
            seed=self.seed,
            max_bucket=max_bucket,
            measure=self.measure,
            width=self.width,
            radius=radius,
        )

    @overload
    def pairs(
        self,
        radius: float,
        output: None = None,
        *,
        max_bucket: int = ...,
        on_error: str = ...,
        memory: str | int = ...,
        threads: int | None = ...,
        work: AnyPath | None = ...,
        progress: Progress | None = ...,
    ) -> pa.Table: ...
    @overload
    def pairs(
        self,
        radius: float,
        output: AnyPath,
        *,
        max_bucket: int = ...,
        on_error: str = ...,
        memory: str | int = ...,
        threads: int | None = ...,
        work: AnyPath | None = ...,
        progress: Progress | None = ...,
    ) -> dict[str, Any]: ...
    def pairs(
        self,
        radius: float,
        output: AnyPath | None = None,
        *,
        max_bucket: int = 2000,
        on_error: str = "fail",
        memory: str | int = "4GB",
        threads: int | None = None,
        work: AnyPath | None = None,
        progress: Progress | None = None,
    ) -> pa.Table | dict[str, Any]:
        """All pairs within a distance that share a bucket: left, right (row numbers) and distance, in row order.

        A bucket, or a group of equal vectors, of more than ``max_bucket`` pairs each member with its first 16 only; the
        report counts what that leaves out.

        Args:
            radius: The distance up to which two are a pair.
            output: A .parquet, .csv, .tsv or .jsonl file to write instead; then the report is what is returned.
            max_bucket: Members up to which a bucket is compared all with all.
            on_error: ``fail``, ``quarantine`` or ``skip``: what becomes of vectors that can not be used.
            memory: How much may be used, such as ``4GB``.
            threads: How many threads; all cores if not given.
            work: A directory that keeps finished pieces, so that an interrupted run goes on where it stopped.
            progress: Who is told how far the work is.
        """
        source, settings = self._fitted, self._settings(_radius(radius, self.measure), max_bucket)
        limits, watcher = Limits.of(memory, threads), progress or Silence()
        check_on_error(on_error)
        corpus = Corpus(sources=[source], columns=Columns(), on_error=on_error)
        manifest = {"task": "vector pairs", "settings": settings.to_dict(), "on_error": on_error}
        with ExitStack() as stack:
            pieces = _work([source], output, work, {**manifest, "inputs": corpus.fingerprint()}, stack)
            found = find_pairs(source, corpus, settings, limits, pieces, watcher)
            tables, schema = pair_tables(found), pair_schema(found, sources=False)
            if output is None:
                return pa.concat_tables([pa.Table.from_batches([], schema), *tables])
            written = write_tables(output, tables, schema)
            return {**pair_report(found), "pairs": written}

    @overload
    def query(
        self,
        vectors: AnyVectors,
        output: None = None,
        *,
        radius: float | None = ...,
        top: int | None = ...,
        column: str | None = ...,
        on_error: str = ...,
        memory: str | int = ...,
        threads: int | None = ...,
        work: AnyPath | None = ...,
        progress: Progress | None = ...,
    ) -> pa.Table: ...
    @overload
    def query(
        self,
        vectors: AnyVectors,
        output: AnyPath,
        *,
        radius: float | None = ...,
        top: int | None = ...,
        column: str | None = ...,
        on_error: str = ...,
        memory: str | int = ...,
        threads: int | None = ...,
        work: AnyPath | None = ...,
        progress: Progress | None = ...,
    ) -> dict[str, Any]: ...
    def query(
        self,
        vectors: AnyVectors,
        output: AnyPath | None = None,
        *,
        radius: float | None = None,
        top: int | None = None,
        column: str | None = None,
        on_error: str = "fail",
        memory: str | int = "4GB",
        threads: int | None = None,
        work: AnyPath | None = None,
        progress: Progress | None = None,
    ) -> pa.Table | dict[str, Any]:
        """For each of ``vectors`` the fitted ones near it: query, neighbour (row numbers) and distance, nearest first.

        Looked at are those that share a bucket with the query, all of them. A single vector may be given as a row.

        Args:
            vectors: What is asked, as :meth:`fit` takes vectors.
            output: As in :meth:`pairs`.
            radius: Only those within this distance.
            top: Only so many for each query. One of ``radius`` and ``top`` has to be given.
            column: The column of a Parquet file.
            on_error: As in :meth:`pairs`; a query that can not be used has no neighbours.
            memory: As in :meth:`pairs`.
            threads: As in :meth:`pairs`.
            work: As in :meth:`pairs`.
            progress: As in :meth:`pairs`.
        """
        source, queries = self._fitted, open_vectors(_as_rows(vectors), column)
        if radius is None and top is None:
            raise ConfigError("a query takes radius, top or both, got neither")
        most = None if top is None else check_whole("top", top, 1, 2**31)
        within = math.inf if radius is None else _radius(radius, self.measure)
        _check_dims(queries, source)
        limits, watcher = Limits.of(memory, threads), progress or Silence()
        check_on_error(on_error)
        search, asked = self._near_search(limits, on_error), Faults(on_error)
        settings = {**self._settings(0.0).to_dict(), "radius": radius, "top": top}
        prints = {"inputs": [source.fingerprint()], "queries": [queries.fingerprint()]}
        manifest = {"task": "vector neighbours", "settings": settings, "on_error": on_error, **prints}
        with ExitStack() as stack:
            pieces = _work([source, queries], output, work, manifest, stack)
            tables = search.answer(queries, within, most, pieces, watcher, asked)
            if output is None:
                return pa.concat_tables([pa.Table.from_batches([], SCHEMA), *tables])
            written = write_tables(output, tables, SCHEMA)
            about = {"minwise": _kernel.VERSION, "settings": settings, **_query_counts(search, queries, asked)}
            faults = [one.to_dict() for one in (*search.faults.shown, *asked.shown)]
            return {**about, "compared": search.compared(pieces), "faults": faults, "neighbours": written}

    def _near_search(self, limits: Limits, on_error: str) -> NearSearch:
        """The tables, which are kept from one query to the next."""
        if self._near is None or self._near[0] != limits or self._near[1].faults.on_error != on_error:
            self._near = limits, NearSearch(self._fitted, self._settings(0.0), limits, Faults(on_error))
        return self._near[1]


class EuclideanLSH(_VectorLSH):
    """Finds vectors that are near each other in Euclidean distance.

    Each of ``tables`` keys is made of ``hashes`` lines; on a line, h(x) = ⌊(w·x + u)/width⌋ with normally distributed w
    and uniform u (Datar, Immorlica, Indyk & Mirrokni, 2004).

    Attributes:
        width: Of the pieces that lines are cut into. Wider ones find more, and compare more in vain.
        hashes: Lines in a key. More make buckets smaller.
        tables: Keys of a vector. More find more.
        seed: Seed of the lines.
        planned_radius: The distance that the layout was planned for, if it was.

    >>> import minwise as mw
    >>> points = [[0.0, 0.0], [3.0, 4.0], [90.0, 90.0]]
    >>> mw.EuclideanLSH.plan(points, radius=6.0).fit(points).pairs(6.0).to_pylist()
    [{'left': 0, 'right': 1, 'distance': 5.0}]
    """

    measure = "euclidean"

    def __init__(self, *, width: float, hashes: int, tables: int, seed: int = 1) -> None:
        super().__init__(hashes=hashes, tables=tables, seed=seed)
        self.width = _number("width", width)
        if not (self.width > 0.0 and math.isfinite(self.width)):
            raise ConfigError(f"width must be above 0 and finite, got {show(width)}")


class CosineLSH(_VectorLSH):
    """Finds vectors that point the same way: their distance is 1 − cos θ, from 0 to 2.

    Each of ``tables`` keys is made of ``hashes`` random hyperplanes; a vector's side of each is a bit (Charikar, 2002).

    Attributes:
        hashes: Hyperplanes in a key. More make buckets smaller.
        tables: Keys of a vector. More find more.
        seed: Seed of the hyperplanes.
        planned_radius: The distance that the layout was planned for, if it was.

    >>> import minwise as mw
    >>> arrows = [[1.0, 0.0], [3.0, 0.0], [0.0, 1.0]]
    >>> mw.CosineLSH.plan(arrows, radius=0.1).fit(arrows).pairs(0.1).to_pylist()
    [{'left': 0, 'right': 1, 'distance': 0.0}]
    """

    measure = "cosine"


def _check_dims(queries: VectorSource, vectors: VectorSource) -> None:
    """Raises if queries are not of the dimensions of what they are compared with."""
    if queries.rows and vectors.rows and queries.dims != vectors.dims:
        both = f"{queries.dims} in queries, {vectors.dims} in vectors"
        raise MismatchError(f"queries must have as many values as vectors, got {both}")


def _query_counts(search: NearSearch, queries: VectorSource, asked: Faults) -> dict[str, Any]:
    """How many vectors could be searched and asked, and how many could not."""
    unusable = search.faults.count
    return {
        "counts": {"documents": search.source.rows - unusable, "quarantined": unusable},
        "queries": {"asked": queries.rows - asked.count, "quarantined": asked.count},
    }


def _number(name: str, value: object) -> float:
    """A number; a string that spells one is none, nor is a truth value."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, (str, bool)) or math.isnan(number):
        raise ConfigError(f"{name} must be a number, got {show(value)}")
    return number


def _radius(value: object, measure: str) -> float:
    """A distance: 0 or more, and at most what there is."""
    radius = _number("radius", value)
    if radius < 0.0 or math.isinf(radius):
        raise ConfigError(f"radius must be 0 or more and finite, got {show(value)}")
    if measure == "cosine" and radius > 2.0:
        raise ConfigError(f"radius must be at most 2, since it is 1 minus a cosine, got {show(value)}")
    return radius


def _as_rows(vectors: AnyVectors) -> AnyVectors:
    """One vector as a matrix of one row."""
    if getattr(vectors, "ndim", None) == 1:
        return vectors.reshape(1, -1)
    if isinstance(vectors, (list, tuple)) and vectors and all(isinstance(one, (int, float)) for one in vectors):
        return [vectors]
    return vectors


def _work(
    sources: list[VectorSource],
    output: AnyPath | None,
    work: AnyPath | None,
    manifest: dict[str, Any],
    stack: ExitStack,
) -> Work:
    """The directory for the pieces, after a look at where the result is to go."""
    file = table_file(output)
    if file is not None:
        refuse_inputs(file, list(sources))
    return stack.enter_context(choose_work(work, manifest, file))
