"""Options: the settings of a call as a user names them in; checked settings, limits and a corpus out."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

from minwise.config import check_choice, check_names, check_on_error, check_path, check_seed, show
from minwise.engines.documents import Corpus
from minwise.errors import ConfigError
from minwise.first_stage import choose_elements
from minwise.formats.files import is_url
from minwise.formats.gather import Files, gather
from minwise.formats.source import Columns, Source
from minwise.limits import Limits
from minwise.plan import Plan
from minwise.plan import plan as make_plan
from minwise.progress import Progress, Silence
from minwise.stages.settings import FindSettings
from minwise.stages.shingle import Shingler, ShingleSets

__all__ = ["Options"]

AnySource = Any
AnyPath = str | PathLike[str]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Every setting of the calls that look at a corpus, under its public name and with its default.

    Attributes:
        threshold: Jaccard similarity from which on two documents are near-duplicates.
        recall: With what probability a pair at the threshold is found; bands and rows follow from it.
        shingle: ``word:5``, ``char:9``, ``byte:8``, ``set`` for sets, or a :class:`Shingler`.
        bag: Whether repeated shingles count.
        scheme: ``fast`` or ``minhash``.
        slots: Slots that the plan may use.
        bands: With ``rows``: a layout that wins over ``recall``.
        rows: Slots per band.
        seed: Seed of every hash.
        exact: Whether to find every pair by an exact join, in place of bands; takes longer, and disk for all shingles.
        verify: ``exact``, ``signature`` (similarities are estimates) or ``none`` (every candidate is a pair).
        group: ``star``: who is removed is similar to the kept one itself. ``components``: whatever is connected.
        keep: ``first``, ``last``, ``longest``, ``shortest``, ``max:COL`` or ``min:COL``.
        max_bucket: Members up to which a bucket, or a group of identical documents, is compared all with all.
        group_by: Column that names the set a row belongs to, of a table with a row per member.
        item: Column of the item that such a row adds to its set.
        weight: Column of how often it adds it, whole numbers; bags are compared then.
        transpose: Whether sets and items are turned round, so that similar items are found.
        separator: What stands between items that are in one string; white space on lines of items if not given.
        fields: Columns that records are compared by, such as ``"name:char:3 phone:digits"``, or a mapping.
        weights: How much fields count, such as ``"name=2"``, or a mapping; 1 if not given.
        html: Whether texts are pages of HTML, of which only what a reader sees counts.
        text_column: Column of the text; several are joined by a line break. Of sets, the column of their items.
        id_column: Column of the id; ``id`` if a source has it, otherwise ids are made from source and row.
        format: ``parquet``, ``jsonl``, ``csv``, ``tsv``, ``arrow`` or ``text``, for files whose names do not tell; of
            sets also ``baskets``, one on each line, or ``named-baskets``, whose first item is the id.
        on_error: ``fail``, ``quarantine`` or ``skip``: what becomes of rows that can not be read.
        memory: How much may be used, such as ``4GB``.
        threads: How many threads; all cores if not given.
        work: A directory that keeps finished pieces, so that an interrupted run goes on where it stopped.
        against: A corpus that is compared with, but never written (dedup only).
        engine: ``local``, this machine, or ``spark``.
        master: Where Spark runs, such as ``local[*]`` or ``spark://host:7077``; that of the session that is active, or
            of Spark's own settings, if not given.
        spark_conf: Settings of Spark by name.
        progress: Who is told how far the work is.
    """

    threshold: float = 0.8
    recall: float = 0.99
    shingle: str | Shingler = "word:5"
    bag: bool = False
    scheme: str = "fast"
    slots: int = 256
    bands: int | None = None
    rows: int | None = None
    seed: int = 1
    exact: bool = False
    verify: str = "exact"
    group: str = "star"
    keep: str = "first"
    max_bucket: int = 2000
    group_by: str | None = None
    item: str | None = None
    weight: str | None = None
    transpose: bool = False
    separator: str | None = None
    fields: str | Mapping[str, str] | None = None
    weights: str | Mapping[str, int] | None = None
    html: bool = False
    text_column: str | Sequence[str] = "text"
    id_column: str | None = None
    format: str | None = None
    on_error: str = "fail"
    memory: str | int = "4GB"
    threads: int | None = None
    work: AnyPath | None = None
    against: AnySource = None
    engine: str = "local"
    master: str | None = None
    spark_conf: Mapping[str, str] | None = None
    progress: Progress | None = None

    @classmethod
    def of(cls, source: AnySource, given: dict[str, Any], *, without: tuple[str, ...] = ()) -> "Options":
        """The settings as they were given by name; those in ``without`` mean nothing to the call."""
        if isinstance(source, ShingleSets):
            given = {"shingle": "set", **given}
        check_names(given, [one.name for one in fields(cls) if one.name not in without])
        return cls(**given)

    @property
    def watcher(self) -> Progress:
        """Who is told how far the work is."""
        return self.progress or Silence()

    def settings(self, *, of_frame: bool = False) -> FindSettings:
        """What decides the result.

        Args:
            of_frame: Whether texts or sets come from a DataFrame of Spark, which is not read by columns as sources are.
        """
        plan = self._plan_of_one_slot() if check_choice("exact", self.exact, (False, True)) else self._plan()
        seed = check_seed("seed", self.seed)
        shared = {name: getattr(self, name) for name in ("scheme", "verify", "group", "keep", "max_bucket", "exact")}
        elements = choose_elements(self, seed)
        if of_frame and self.shingle == "set" and self.bag:
            raise ConfigError("bag must be left out with sets of a DataFrame, got True")
        shingler = None if elements is not None else self._shingler(seed)
        turned, html = bool(self.transpose), bool(self.html)
        return FindSettings(
            plan=plan, shingler=shingler, seed=seed, elements=elements, transpose=turned, html=html, **shared
        )

    def _plan(self) -> Plan:
        return make_plan(self.threshold, self.recall, slots=self.slots, bands=self.bands, rows=self.rows)

    def _plan_of_one_slot(self) -> Plan:
        """What is planned when nothing is left to chance: a slot that nobody looks at."""
        for name in ("recall", "scheme", "slots", "bands", "rows", "verify"):
            if getattr(self, name) != getattr(Options, name):
                given = show(getattr(self, name))
                raise ConfigError(f"{name} must be left out with exact, which finds and compares all; got {given}")
        return make_plan(self.threshold, bands=1, rows=1)

    def _shingler(self, seed: int) -> Shingler:
        if not isinstance(self.shingle, Shingler):
            return Shingler(self.shingle, bag=self.bag, seed=seed)
        if self.bag:
            raise ConfigError("bag must be left out with a Shingler, which has its own, got True")
        return self.shingle

    @property
    def groups(self) -> bool:
        """Whether documents are groups of rows, or of what rows hold."""
        return self.group_by is not None or bool(self.transpose)

    @property
    def on_spark(self) -> bool:
        """Whether Spark does the work.

        Raises:
            ConfigError: If the engine is none, or a setting means nothing to it.
        """
        if check_choice("engine", self.engine, ("local", "spark")) == "spark":
            if self.exact:
                raise ConfigError("exact must be left out with engine spark, which goes by bands; raise recall instead")
            for name in ("group_by", "transpose"):
                if getattr(self, name):
                    raise ConfigError(f"{name} must be left out with engine spark, which does not group rows yet")
            return True
        for name in ("master", "spark_conf"):
            if getattr(self, name):
                raise ConfigError(f"{name} must be left out with engine local, got {show(getattr(self, name))}")
        if is_url(self.work):
            raise ConfigError(f"work must be a directory of this machine with engine local, got {self.work}")
        return False

    def columns(self, settings: FindSettings) -> Columns:
        """What is read of every source under the settings that were made of these options."""
        columns = Columns.of(self.text_column, self.id_column, rank=settings.rank_column)
        if settings.elements is None:
            return replace(columns, html=settings.html)
        return replace(columns, text=settings.elements.columns, elements=settings.elements)

    def _refuse_work_inside(self, source: AnySource) -> None:
        """Raises if the work directory lies in an input directory, whose files it would become."""
        if self.work is None:
            return
        work = Path(os.path.realpath(check_path("work", self.work)))
        for given in source if isinstance(source, Files) else [source]:
            folder = Path(os.path.realpath(given)) if isinstance(given, (str, os.PathLike)) and given else None
            if folder is not None and folder.is_dir() and folder in work.parents:
                raise ConfigError(f"work must not lie in an input directory, got {self.work} in {given}")

    def limits(self) -> Limits:
        """How much of the machine may be used."""
        return Limits.of(self.memory, self.threads)

    def corpus(self, source: AnySource, settings: FindSettings) -> Corpus:
        """Everything there is to read under the settings that were made of these options, in document order."""
        check_on_error(self.on_error)
        columns = self.columns(settings)
        given = [one for one in (source, self.against) if isinstance(one, (str, Files))]
        piped = any(one == "-" or (isinstance(one, Files) and "-" in one) for one in given)
        if self.on_spark and piped:
            raise ConfigError("engine must be local with - as input: Spark can not read it; save it to a file")
        if self.work is not None and piped:
            raise ConfigError("work must be left out with - as input: standard input can not be read again")
        self._refuse_work_inside(source)
        sources, root = gather(source, columns, self.format)
        against: list[Source] = []
        if self.against is not None:
            against, _ = gather(self.against, columns, self.format)
            for one in against:
                one.name = one.name or "against"
        return Corpus(
            sources=[*against, *sources],
            columns=columns,
            against=len(against),
            on_error=self.on_error,
            root=root,
            format=self.format,
        )
