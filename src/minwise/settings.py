"""Limits: how much of the machine a run may use."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from os import PathLike
from typing import Any, Protocol

from minwise import _kernel
from minwise.checks import (
    check_choice,
    check_names,
    check_seed,
    check_threads,
    check_type,
    check_whole,
    show,
)
from minwise.errors import ConfigError
from minwise.inputs.elements import Elements
from minwise.inputs.files import is_url
from minwise.inputs.items import ItemLists, ItemSets, Members
from minwise.inputs.records import Records, parse_fields
from minwise.inputs.source import Columns
from minwise.progress import Progress, Silence
from minwise.sketches.planning import Plan
from minwise.sketches.planning import plan as make_plan
from minwise.text.shingling import Shingler, ShingleSets

__all__ = ["FindSettings", "Limits", "Options", "choose_elements", "parse_bytes"]

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
# What a file that is being written takes: a row group of text, what it is made from, and what it is compressed to.
WRITER_BYTES = 512 * 10**6
# Below this there is no room for the batches of text that are always in flight.
LEAST_MEMORY = 256 * 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of the machine a run may use. None of it changes the result.

    Attributes:
        memory: Bytes.
        threads: Threads; 0 stands for all cores.
        batch_bytes: Text that is read at once.
    """

    memory: int = 4 * 10**9
    threads: int = 0
    batch_bytes: int = 1 << 25

    @classmethod
    def of(cls, memory: str | int, threads: int | None) -> "Limits":
        """The limits as a user gives them."""
        allowed = parse_bytes("memory", memory)
        if allowed < LEAST_MEMORY:
            raise ConfigError(f"memory must be at least 256MB, got {show(memory)}")
        return cls(memory=allowed, threads=check_threads(threads), batch_bytes=min(1 << 25, allowed // 64))

    @property
    def writers(self) -> int:
        """How many files are written at a time: as many as threads, and as there is memory for."""
        return min(self.threads or os.cpu_count() or 1, max(1, self.memory // WRITER_BYTES))


def parse_bytes(name: str, value: str | int) -> int:
    """A size such as ``4GB``, ``512MiB`` or a number of bytes.

    >>> parse_bytes("memory", "1.5GB")
    1500000000
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = (
        re.fullmatch(r"\s*(\d{1,18}(?:\.\d+)?)\s*([KMGT]?I?)B?\s*", value, re.IGNORECASE)
        if isinstance(value, str)
        else None
    )
    if found is None or found[2].upper() not in UNITS:
        raise ConfigError(f"{name} must be a size such as 4GB or 512MiB, got {show(value)}")
    return int(float(found[1]) * UNITS[found[2].upper()])


# What a shingle is if nothing is said of it.
USUAL = "word:5"


class FirstSettings(Protocol):
    """The settings that decide it, as :class:`minwise.settings.Options` has them."""

    @property
    def shingle(self) -> str | Shingler: ...
    @property
    def bag(self) -> bool: ...
    @property
    def group_by(self) -> str | None: ...
    @property
    def item(self) -> str | None: ...
    @property
    def weight(self) -> str | None: ...
    @property
    def transpose(self) -> bool: ...
    @property
    def separator(self) -> str | None: ...
    @property
    def fields(self) -> str | Mapping[str, str] | None: ...
    @property
    def weights(self) -> str | Mapping[str, int] | None: ...
    @property
    def html(self) -> bool: ...
    @property
    def text_column(self) -> str | Sequence[str]: ...


def choose_elements(options: FirstSettings, seed: int) -> Elements | None:
    """What makes sets of rows, or None for texts.

    Raises:
        ConfigError: If a setting is wrong, or means nothing beside the others.
    """
    seed = check_seed("seed", seed)
    for name in ("bag", "transpose", "html"):
        check_choice(name, getattr(options, name), (False, True))
    for name in ("group_by", "item", "weight", "separator"):
        value = getattr(options, name)
        if value is not None and not (isinstance(value, str) and value):
            raise ConfigError(f"{name} must be a {'string' if name == 'separator' else 'name'}, got {show(value)}")
    if options.fields is not None:
        return _records(options, seed)
    _refuse(options, "without fields", "weights")
    if options.group_by is not None or options.item is not None:
        return _members(options, seed)
    _refuse(options, "without group_by", "weight")
    if options.shingle == "set":
        return _sets(options, seed)
    _refuse(options, "without shingle set", "transpose", "separator")
    return None


def _records(options: FirstSettings, seed: int) -> Elements:
    _refuse(options, "with fields", "group_by", "item", "weight", "transpose", "separator", "html")
    _refuse_texts(options, "fields")
    return Records(fields=parse_fields(options.fields, options.weights), bag=options.bag, seed=seed)


def _members(options: FirstSettings, seed: int) -> Elements:
    for name, other in (("group_by", "item"), ("item", "group_by")):
        if getattr(options, name) is None:
            raise ConfigError(f"{name} must be a column, given with {other}, got None")
    _refuse(options, "with group_by", "separator", "html")
    _refuse_texts(options, "group_by")
    names = [name for name in (options.group_by, options.item, options.weight) if name is not None]
    if len(set(names)) < len(names):
        raise ConfigError(f"group_by, item and weight must be columns of their own, got {', '.join(names)}")
    return Members(
        group=names[0], item=names[1], weight=options.weight, bag=options.bag, turned=options.transpose, seed=seed
    )


def _sets(options: FirstSettings, seed: int) -> Elements:
    _refuse(options, "with shingle set", "html")
    column, *more = Columns.of(options.text_column, None).text
    if more:
        raise ConfigError(f"text_column must be one column with shingle set, got {show(options.text_column)}")
    if options.transpose:
        return ItemLists(column=column, separator=options.separator, bag=options.bag)
    return ItemSets(column=column, separator=options.separator, bag=options.bag, seed=seed)


def _refuse(options: FirstSettings, beside: str, *names: str) -> None:
    """Raises for the first of these settings that is given."""
    for name in names:
        if getattr(options, name) not in (None, False):
            raise ConfigError(f"{name} must be left out {beside}, got {show(getattr(options, name))}")


def _refuse_texts(options: FirstSettings, beside: str) -> None:
    """Raises if it is said how texts are cut, or where they are."""
    if options.shingle not in (USUAL, "set"):
        raise ConfigError(f"shingle must be left out with {beside}, got {show(options.shingle)}")
    if Columns.of(options.text_column, None).text != ("text",):
        raise ConfigError(f"text_column must be left out with {beside}, got {show(options.text_column)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FindSettings:
    """Everything that decides which documents are near-duplicates, and which of them are kept.

    Attributes:
        plan: Threshold, bands and rows.
        shingler: How texts are cut; None for sets, which are not.
        scheme: ``fast`` or ``minhash``.
        seed: Seed of every hash.
        verify: ``exact`` compares the shingle sets of every candidate pair, ``signature`` estimates their similarity
            from signatures, ``none`` takes every candidate for a pair.
        group: ``star`` or ``components``.
        keep: Which document of a group is kept: ``first``, ``last``, ``longest``, ``shortest``, ``max:COL`` or
            ``min:COL``.
        max_bucket: Members up to which a bucket, or a group of identical documents, is compared all with all.
        exact: Whether every pair is found, by an exact join in place of bands.
        elements: What makes sets of columns where there is no shingler; None for sets in memory, which are ready.
        transpose: Whether sets and items are turned round.
        html: Whether texts are pages of HTML.
    """

    plan: Plan
    shingler: Shingler | None
    scheme: str = "fast"
    seed: int = 1
    verify: str = "exact"
    group: str = "star"
    keep: str = "first"
    max_bucket: int = 2000
    exact: bool = False
    elements: Elements | None = None
    transpose: bool = False
    html: bool = False

    def __post_init__(self) -> None:
        check_choice("scheme", self.scheme, ("fast", "minhash"))
        check_choice("verify", self.verify, ("exact", "signature", "none"))
        check_choice("group", self.group, ("star", "components"))
        # A bucket above the cap pairs each member with its first few: with fewer allowed the cap would add pairs.
        check_whole("max_bucket", self.max_bucket, _kernel.FIRST_MEMBERS, 10_000)
        policy, colon, column = check_type("keep", self.keep, str).partition(":")
        plain = policy in ("first", "last", "longest", "shortest") and not colon
        if not plain and not (policy in ("max", "min") and column):
            rule = "keep must be first, last, longest, shortest, max:COL or min:COL"
            raise ConfigError(f"{rule}, got {show(self.keep)}")

    @property
    def rank_column(self) -> str | None:
        """The column that the keep policy compares, if it is one that does."""
        return self.keep.partition(":")[2] or None

    @property
    def measured(self) -> str:
        """What the column of what was compared is called: estimates are not passed off as similarities."""
        return "similarity" if self.verify == "exact" else "similarity_estimate"

    @property
    def of_identical(self) -> float:
        """What stands there for identical documents."""
        return 1.0

    def planned(self) -> dict[str, Any] | None:
        """The plan in plain values; None if there is none because every pair is found."""
        return None if self.exact else self.plan.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """Plain values under their public names."""
        shingles = {"shingle": "set"} if self.shingler is None else self.shingler.settings
        if self.elements is not None:
            shingles = {**shingles, **self.elements.settings}
        shingles |= {name: True for name in ("transpose", "html") if getattr(self, name)}
        names = ("scheme", "seed", "verify", "group", "keep", "max_bucket")
        layout = {"bands": self.plan.bands, "rows": self.plan.rows}
        found = {"exact": True} if self.exact else layout
        shared = {name: getattr(self, name) for name in names if not (self.exact and name == "scheme")}
        return {"threshold": self.plan.threshold, **found, **shingles, **shared}


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

    def limits(self) -> Limits:
        """How much of the machine may be used."""
        return Limits.of(self.memory, self.threads)
