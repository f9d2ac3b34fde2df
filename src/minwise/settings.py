"""Settings of a run, resolved and checked: what decides the result, and what limits the run.

:mod:`minwise.options` defines the settings that a caller gives; the functions here turn them into
:class:`SearchSettings`, :class:`RunLimits` and the :class:`~minwise.inputs.source.Columns` that are read.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from minwise import _kernel
from minwise.checks import check_integer, check_seed, check_threads, check_type, show
from minwise.errors import ConfigError
from minwise.inputs.elements import Elements
from minwise.inputs.items import GroupedItems, ItemLists, ItemSets
from minwise.inputs.records import RecordFields, parse_fields
from minwise.inputs.source import Columns
from minwise.options import DedupOptions, EngineOptions, RunOptions, check_setting, definitions, with_defaults
from minwise.progress import CallbackProgress, NullProgress, Progress, ProgressSetting
from minwise.sketches.planning import Plan
from minwise.sketches.planning import plan as make_plan
from minwise.text.shingling import NORMALISATION, Shingler, ShingleSets

__all__ = [
    "RunLimits",
    "SearchSettings",
    "columns_to_read",
    "groups_rows",
    "make_elements",
    "parse_bytes",
    "progress_of",
    "recorded_options",
    "resolve_options",
    "restored_options",
    "run_limits",
    "runs_on_spark",
    "search_settings",
]

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
# Share of the memory, as 1 of so many, for batches in flight; three of the usual size take less.
AHEAD_SHARE = 16
# Memory of one open output file: a row group of text, its source batches, and the compressed pages.
WRITER_BYTES = 512 * 10**6
# Below this there is no room for the batches of text that are always in flight.
MIN_MEMORY = 256 * 10**6
DEFINITIONS = definitions(DedupOptions)
# Settings of a run that ``run.json`` does not record: they do not change the result, or are sources.
NOT_RECORDED = {*definitions(RunOptions), *definitions(EngineOptions), "against"}


def resolve_options(call: type, source: object, given: Mapping[str, object]) -> DedupOptions:
    """Return all settings of a call: the given ones, and the default of every other one.

    Args:
        call: The option class of the call; a setting that it lacks is refused.
        source: The documents of the call. Sets need no ``shingle="set"``.
        given: The settings that the caller gave, by name.

    Raises:
        ConfigError: If a setting is unknown, or is given a value that is not one of its choices.
    """
    sets = {"shingle": "set"} if isinstance(source, ShingleSets) else {}
    return cast("DedupOptions", {**with_defaults(DedupOptions, {}), **with_defaults(call, {**sets, **given})})


def recorded_options(options: DedupOptions) -> dict[str, Any]:
    """Return the settings that decide the result of a call, as plain values for JSON."""
    return {name: _plain(value) for name, value in options.items() if name not in NOT_RECORDED}


def _plain(value: object) -> object:
    if isinstance(value, Shingler):
        return value.settings
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, (list, tuple)) else value


def restored_options(recorded: Mapping[str, Any], given: Mapping[str, object]) -> DedupOptions:
    """Return the settings of an earlier call, from what :func:`recorded_options` returned, with other run options.

    Raises:
        ConfigError: If a setting is unknown or has a wrong value.
    """
    shingle = recorded.get("shingle")
    shingler = {"shingle": Shingler.from_settings(shingle)} if isinstance(shingle, Mapping) else {}
    return resolve_options(DedupOptions, None, {**recorded, **shingler, **given})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """Limits of memory and threads. They never change the result.

    Attributes:
        memory: Memory for data, in bytes.
        threads: Number of threads; 0 means all cores.
        batch_bytes: Bytes of text in one batch.
    """

    memory: int = 4 * 10**9
    threads: int = 0
    batch_bytes: int = 1 << 25

    @classmethod
    def of(cls, memory: str | int, threads: int | None) -> "RunLimits":
        """Return the limits for the values of the settings ``memory`` and ``threads``."""
        allowed = parse_bytes("memory", memory)
        if allowed < MIN_MEMORY:
            raise ConfigError(f"memory must be at least 256MB, got {show(memory)}")
        return cls(memory=allowed, threads=check_threads(threads), batch_bytes=min(1 << 25, allowed // 64))

    @property
    def ahead_bytes(self) -> int:
        """Bytes that batches may take before the next one is read: large texts are read one by one."""
        return self.memory // AHEAD_SHARE

    @property
    def writers(self) -> int:
        """Number of files to write at the same time: one per thread, as far as memory allows."""
        return min(self.threads or os.cpu_count() or 1, max(1, self.memory // WRITER_BYTES))


def parse_bytes(name: str, value: str | int) -> int:
    """Return a size in bytes, given as a number or as a string such as ``4GB`` or ``512MiB``.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """Everything that decides which documents are near-duplicates, and which of them are kept.

    Attributes:
        plan: Threshold, bands and rows.
        shingler: Cuts texts into shingles; None for documents that are not texts.
        scheme: Sketch scheme, ``fast`` or ``minhash``.
        seed: Seed of every hash.
        verify: ``exact`` compares the shingle sets of every candidate pair, ``signature`` estimates their similarity
            from signatures, ``none`` accepts every candidate.
        group: ``star`` or ``components``.
        keep: Document of a cluster to keep: ``first``, ``last``, ``longest``, ``shortest``, ``max:COL`` or ``min:COL``.
        max_bucket: Members up to which all pairs of a bucket, or of a group of identical documents, are compared.
        exact: Whether every pair is found, by an exact join instead of bands.
        elements: Makes sets from columns where there is no shingler; None for sets in memory.
        transpose: Whether the roles of sets and items are swapped.
        html: Whether texts are HTML pages.
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
        for name in ("scheme", "verify", "group"):
            check_setting(DEFINITIONS[name], getattr(self, name))
        # A bucket above the cap pairs each member with its first few: with fewer allowed the cap would add pairs.
        check_integer("max_bucket", self.max_bucket, _kernel.FIRST_MEMBERS, 10_000)
        policy, colon, column = check_type("keep", self.keep, str).partition(":")
        plain = policy in ("first", "last", "longest", "shortest") and not colon
        if not plain and not (policy in ("max", "min") and column):
            rule = "keep must be first, last, longest, shortest, max:COL or min:COL"
            raise ConfigError(f"{rule}, got {show(self.keep)}")

    @property
    def keep_column(self) -> str | None:
        """Column that the keep policy compares, if it compares one."""
        return self.keep.partition(":")[2] or None

    @property
    def similarity_name(self) -> str:
        """Name of the similarity column; an estimate is never called a similarity."""
        return "similarity" if self.verify == "exact" else "similarity_estimate"

    @property
    def identical_similarity(self) -> float:
        """Value of that column for identical documents."""
        return 1.0

    def plan_dict(self) -> dict[str, Any] | None:
        """Return the plan as plain values; None for an exact join, which has no plan."""
        return None if self.exact else self.plan.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values under their public names."""
        shingles = {"shingle": "set"} if self.shingler is None else self.shingler.settings
        if self.elements is not None:
            shingles = {**shingles, **self.elements.settings}
        shingles |= {name: True for name in ("transpose", "html") if getattr(self, name)}
        names = ("scheme", "seed", "verify", "group", "keep", "max_bucket")
        layout = {"bands": self.plan.bands, "rows": self.plan.rows}
        found = {"exact": True} if self.exact else layout
        shared = {name: getattr(self, name) for name in names if not (self.exact and name == "scheme")}
        return {"threshold": self.plan.threshold, **found, **shingles, **shared}


def search_settings(options: DedupOptions, *, of_frame: bool = False) -> SearchSettings:
    """Return the search settings of a call.

    Args:
        options: All settings of a call, from :func:`resolve_options`.
        of_frame: Whether documents come from a Spark DataFrame, which is not read through sources.

    Raises:
        ConfigError: If a setting breaks its rule or contradicts another one.
    """
    plan = _placeholder_plan(options) if options["exact"] else _plan(options)
    seed = check_seed("seed", options["seed"])
    elements = make_elements(options, seed)
    if of_frame and options["shingle"] == "set" and options["bag"]:
        raise ConfigError("bag must be left out with sets of a DataFrame, got True")
    return SearchSettings(
        plan=plan,
        shingler=None if elements is not None else _shingler(options, seed),
        seed=seed,
        elements=elements,
        transpose=options["transpose"],
        html=options["html"],
        scheme=options["scheme"],
        verify=options["verify"],
        group=options["group"],
        keep=options["keep"],
        max_bucket=options["max_bucket"],
        exact=options["exact"],
    )


def _plan(options: DedupOptions) -> Plan:
    slots, bands, rows = options["slots"], options["bands"], options["rows"]
    return make_plan(options["threshold"], options["recall"], slots=slots, bands=bands, rows=rows)


def _placeholder_plan(options: DedupOptions) -> Plan:
    """Return a plan of one slot, which an exact join ignores."""
    for name in ("recall", "scheme", "slots", "bands", "rows", "verify"):
        value = _value(options, name)
        if value != DEFINITIONS[name].default:
            raise ConfigError(f"{name} must be left out with exact, which finds and compares all; got {show(value)}")
    return make_plan(options["threshold"], bands=1, rows=1)


def _shingler(options: DedupOptions, seed: int) -> Shingler:
    shingle = options["shingle"]
    if not isinstance(shingle, Shingler):
        normalisation = {name: _value(options, name) for name in NORMALISATION}
        return Shingler(shingle, bag=options["bag"], seed=seed, **normalisation)
    _refuse(options, "with a Shingler, which has its own", "bag", *NORMALISATION)
    return shingle


def make_elements(options: DedupOptions, seed: int) -> Elements | None:
    """Return the converter from rows to sets; None for texts, which a shingler cuts.

    Raises:
        ConfigError: If a setting is wrong, or contradicts another one.
    """
    for name in ("group_by", "item", "weight", "separator"):
        value = _value(options, name)
        if value is not None and not (isinstance(value, str) and value):
            raise ConfigError(f"{name} must be a {'string' if name == 'separator' else 'name'}, got {show(value)}")
    if options["fields"] is not None:
        return _record_elements(options, seed)
    _refuse(options, "without fields", "weights")
    if options["group_by"] is not None or options["item"] is not None:
        return _group_elements(options, seed)
    _refuse(options, "without group_by", "weight")
    if options["shingle"] == "set":
        return _set_elements(options, seed)
    _refuse(options, "without shingle set", "transpose", "separator")
    return None


def _record_elements(options: DedupOptions, seed: int) -> Elements:
    _refuse(options, "with fields", "group_by", "item", "weight", "transpose", "separator", "html", *NORMALISATION)
    _refuse_texts(options, "fields")
    return RecordFields(fields=parse_fields(options["fields"], options["weights"]), bag=options["bag"], seed=seed)


def _group_elements(options: DedupOptions, seed: int) -> Elements:
    for name, other in (("group_by", "item"), ("item", "group_by")):
        if _value(options, name) is None:
            raise ConfigError(f"{name} must be a column, given with {other}, got None")
    _refuse(options, "with group_by", "separator", "html", *NORMALISATION)
    _refuse_texts(options, "group_by")
    weight, turned = options["weight"], options["transpose"]
    names = [name for name in (options["group_by"], options["item"], weight) if name is not None]
    if len(set(names)) < len(names):
        raise ConfigError(f"group_by, item and weight must be columns of their own, got {', '.join(names)}")
    return GroupedItems(group=names[0], item=names[1], weight=weight, bag=options["bag"], transposed=turned, seed=seed)


def _set_elements(options: DedupOptions, seed: int) -> Elements:
    _refuse(options, "with shingle set", "html", *NORMALISATION)
    column, *more = Columns.of(options["text_column"], None).text
    if more:
        raise ConfigError(f"text_column must be one column with shingle set, got {show(options['text_column'])}")
    separator, bag = options["separator"], options["bag"]
    if options["transpose"]:
        return ItemLists(column=column, separator=separator, bag=bag)
    return ItemSets(column=column, separator=separator, bag=bag, seed=seed)


def _value(options: DedupOptions, name: str) -> Any:  # noqa: ANN401 - any setting
    return cast("dict[str, Any]", options)[name]


def _refuse(options: DedupOptions, context: str, *names: str) -> None:
    """Raise for the first of these settings that is given."""
    for name in names:
        value = _value(options, name)
        if value != DEFINITIONS[name].default:
            raise ConfigError(f"{name} must be left out {context}, got {show(value)}")


def _refuse_texts(options: DedupOptions, context: str) -> None:
    """Raise if a setting says how texts are cut, or where they are."""
    if options["shingle"] not in (DEFINITIONS["shingle"].default, "set"):
        raise ConfigError(f"shingle must be left out with {context}, got {show(options['shingle'])}")
    if Columns.of(options["text_column"], None).text != ("text",):
        raise ConfigError(f"text_column must be left out with {context}, got {show(options['text_column'])}")


def columns_to_read(options: DedupOptions, settings: SearchSettings) -> Columns:
    """Return the columns that are read from every source."""
    columns = Columns.of(options["text_column"], options["id_column"], keep_column=settings.keep_column)
    if settings.elements is None:
        return replace(columns, html=settings.html)
    return replace(columns, text=settings.elements.columns, elements=settings.elements)


def run_limits(options: DedupOptions) -> RunLimits:
    """Return the limits of memory and threads."""
    return RunLimits.of(options["memory"], options["threads"])


def progress_of(value: ProgressSetting) -> Progress:
    """Return the receiver of progress events for a value of the setting ``progress``.

    Raises:
        ConfigError: If the value is neither a truth value, a function nor a receiver.
    """
    if value is None or value is False:
        return NullProgress()
    if value is True:
        from minwise._internal.progress_bars import visible_progress  # here, because few calls show bars

        return visible_progress()
    if hasattr(value, "stage"):
        return value
    if not callable(value):
        rule = "progress must be True, False, a function of (stage, done, total, unit) or a minwise.progress.Progress"
        raise ConfigError(f"{rule}, got {show(value)}")
    return CallbackProgress(value)


def groups_rows(options: DedupOptions) -> bool:
    """Return whether a document is a group of rows, or of the items in rows."""
    return options["group_by"] is not None or options["transpose"]


def runs_on_spark(options: DedupOptions) -> bool:
    """Return whether the Spark engine runs the search.

    Raises:
        ConfigError: If a setting has no meaning for the engine.
    """
    if options["engine"] == "spark":
        if options["exact"]:
            raise ConfigError("exact must be left out with engine spark, which uses bands; raise recall instead")
        for name in ("group_by", "transpose"):
            if _value(options, name):
                raise ConfigError(f"{name} must be left out with engine spark, which does not group rows yet")
        return True
    _refuse(options, "with engine local", "master", "spark_conf")
    return False
