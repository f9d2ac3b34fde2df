"""Settings of a run, resolved and checked: what decides the result, and what limits the run.

:mod:`minwise.options` defines the settings that a caller gives; the functions here turn them into
:class:`SearchSettings`, :class:`RunLimits` and the :class:`~minwise.inputs.source.Columns` that are read.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise.checks import check_integer, check_seed, check_threads, check_type, show
from minwise.errors import ConfigError
from minwise.inputs.document_values import ValueColumn, distinct_columns
from minwise.inputs.elements import Elements
from minwise.inputs.items import GroupedItems, ItemLists, ItemSets
from minwise.inputs.records import RecordFields, parse_fields
from minwise.inputs.source import Columns
from minwise.keep_rules import KeepRule, LabelRule, keep_keys
from minwise.options import (
    DedupOptions,
    DocumentSource,
    EngineOptions,
    NearestOptions,
    PassagesOptions,
    RunOptions,
    check_setting,
    definitions,
    with_defaults,
)
from minwise.progress import CallbackProgress, NullProgress, Progress, ProgressSetting
from minwise.sketches.frequencies import FrequencyTable, check_new_table
from minwise.sketches.planning import Plan
from minwise.sketches.planning import plan as make_plan
from minwise.text.shingling import NORMALISATION, Shingler, ShingleSets
from minwise.text.units import UnitName

__all__ = [
    "WEIGHTED",
    "ContaminationRule",
    "NearestSettings",
    "PassageSettings",
    "RunLimits",
    "SearchSettings",
    "check_separator",
    "columns_to_read",
    "contamination_rule",
    "eval_columns",
    "groups_rows",
    "make_elements",
    "nearest_settings",
    "parse_bytes",
    "passage_settings",
    "progress_of",
    "recorded_options",
    "resolve_options",
    "restored_options",
    "run_limits",
    "runs_on_spark",
    "search_settings",
    "second_table",
]

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
# Share of the memory, as 1 of so many, for batches in flight; three of the usual size take less.
AHEAD_SHARE = 16
# Memory of one open output file: a row group of text, its source batches, and the compressed pages.
WRITER_BYTES = 512 * 10**6
# Below this there is no room for the batches of text that are always in flight.
MIN_MEMORY = 256 * 10**6
# Nearest documents of a document: those of one document are expanded in memory.
MOST_NEAREST = 1000
DEFINITIONS = definitions(DedupOptions)
# Name of a similarity in which common elements count little.
WEIGHTED = "weighted_similarity"
# Settings of a run that ``run.json`` does not record: they do not change the result, or are sources.
NOT_RECORDED = {*definitions(RunOptions), *definitions(EngineOptions), "against", "save_frequencies"}


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
    if isinstance(value, os.PathLike):
        return os.fspath(value)
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
        keep: Document of a cluster to keep: ``first``, ``last``, ``longest``, ``shortest``, ``max:COL`` or ``min:COL``,
            or several of these, separated by commas.
        prefer: Column whose first labels are preferred to its others; None for no preference.
        protect: Labels of documents that are never removed, by column; None if there are none.
        max_bucket: Members up to which all pairs of a bucket, or of a group of identical documents, are compared.
        exact: Whether every pair is found, by an exact join instead of bands; always with containment.
        measure: ``jaccard``, or ``containment`` of the document with fewer elements in the other one.
        discount: ``common`` if elements that many documents have count little, else ``none``.
        frequencies: Frequencies to take weights from; None to count elements in the documents.
        elements: Makes sets from columns where there is no shingler; None for sets in memory.
        transpose: Whether the roles of sets and items are swapped.
        html: Whether texts are HTML pages.
        within: Column of which only equal values are compared.
        across: Column of which only different values are compared.
    """

    plan: Plan
    shingler: Shingler | None
    scheme: str = "fast"
    seed: int = 1
    verify: str = "exact"
    group: str = "star"
    keep: str = "first"
    prefer: LabelRule | None = None
    protect: tuple[LabelRule, ...] | None = None
    max_bucket: int = 2000
    exact: bool = False
    measure: str = "jaccard"
    discount: str = "none"
    frequencies: FrequencyTable | None = None
    elements: Elements | None = None
    transpose: bool = False
    html: bool = False
    within: str | None = None
    across: str | None = None

    def __post_init__(self) -> None:
        for name in ("scheme", "verify", "group"):
            check_setting(DEFINITIONS[name], getattr(self, name))
        # A bucket above the cap pairs each member with its first few: with fewer allowed the cap would add pairs.
        check_integer("max_bucket", self.max_bucket, _kernel.FIRST_MEMBERS, 10_000)
        keep_keys(self.keep)

    @property
    def value_columns(self) -> tuple[ValueColumn, ...]:
        """Columns whose values decide the result."""
        label = self.label_column
        labels = () if label is None else (ValueColumn(label, is_label=True, of_references=True),)
        return distinct_columns((*self.keep_rule.value_columns, *labels))

    @property
    def keep_rule(self) -> KeepRule:
        """Which document of a cluster is kept."""
        return KeepRule(keys=keep_keys(self.keep), prefer=self.prefer, protect=self.protect or ())

    @property
    def label_column(self) -> str | None:
        """Column whose values decide which documents are compared, if any do."""
        return self.across if self.within is None else self.within

    @property
    def value_settings(self) -> dict[str, str]:
        """The setting that names this column, if there is one."""
        named = {"within": self.within, "across": self.across}
        return {name: column for name, column in named.items() if column is not None}

    @property
    def similarity_name(self) -> str:
        """Name of the similarity column; an estimate is never called a similarity."""
        if self.measure == "containment":
            return "containment"
        if self.discount == "common":
            return WEIGHTED
        return "similarity" if self.verify == "exact" else "similarity_estimate"

    @property
    def identical_similarity(self) -> float:
        """Value of that column for identical documents."""
        return 1.0

    def plan_dict(self) -> dict[str, Any] | None:
        """Return the plan as plain values; None for an exact join, which has no plan."""
        return None if self.exact else self.plan.to_dict()

    @property
    def factors(self) -> tuple[float, ...] | None:
        """The weight of each class of elements; None if all weigh the same."""
        return None if self.elements is None else self.elements.factors

    @property
    def weighted(self) -> bool:
        """Whether elements have weights."""
        return self.discount == "common" or self.factors is not None

    @property
    def element_settings(self) -> dict[str, Any]:
        """The settings that decide what the elements of a document are, under their public names."""
        shingles = {"shingle": "set"} if self.shingler is None else self.shingler.settings
        if self.elements is not None:
            shingles = {**shingles, **self.elements.settings}
        return shingles | {name: True for name in ("transpose", "html") if getattr(self, name)}

    @property
    def weight_settings(self) -> dict[str, Any]:
        """The settings that decide the weights of elements, if there are any, under their public names."""
        if self.discount == "none":
            return {}
        given = {} if self.frequencies is None else {"frequencies": self.frequencies.identity}
        return {"discount": self.discount, **given}

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values under their public names."""
        names = ("scheme", "seed", "verify", "group", "keep", "max_bucket")
        layout = {"bands": self.plan.bands, "rows": self.plan.rows}
        if self.measure == "containment":
            found: dict[str, Any] = {"measure": "containment"}
        else:
            found = {"exact": True} if self.exact else layout
        shared = {name: getattr(self, name) for name in names if not (self.exact and name == "scheme")}
        weights = self.weight_settings
        values = {**self.value_settings, **self.keep_rule.to_dict()}
        return {"threshold": self.plan.threshold, **found, **weights, **self.element_settings, **shared, **values}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContaminationRule:
    """What makes a document contaminated, and what is done with it.

    Attributes:
        action: ``remove``, ``cut`` or ``mark``.
        ngram: Tokens of an n-gram.
        min_share: Share of the rare n-grams of an item that a document must have.
        min_ngrams: Number of them that is enough, too; None if only the share counts.
        common_share: Share of the documents above which an n-gram is common, and does not count.
        common_count: Number of documents up to which it is not common.
    """

    action: str
    ngram: int
    min_share: float
    min_ngrams: int | None
    common_share: float
    common_count: int

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as plain values."""
        return asdict(self)

    def holds(self, matched: NDArray[Any], rare: NDArray[Any]) -> NDArray[np.bool_]:
        """Return whether so many of the rare n-grams of an item are enough."""
        enough: NDArray[np.bool_] = matched / np.maximum(rare, 1) >= self.min_share
        return enough if self.min_ngrams is None else enough | (matched >= self.min_ngrams)

    def rare(self, frequencies: NDArray[Any], documents: int) -> NDArray[np.bool_]:
        """Return which n-grams are rare among so many distinct documents."""
        rare: NDArray[np.bool_] = frequencies <= max(self.common_count, self.common_share * documents)
        return rare


def search_settings(options: DedupOptions, *, of_frame: bool = False) -> SearchSettings:
    """Return the search settings of a call.

    Args:
        options: All settings of a call, from :func:`resolve_options`.
        of_frame: Whether documents come from a Spark DataFrame, which is not read through sources.

    Raises:
        ConfigError: If a setting breaks its rule or contradicts another one.
    """
    contained = _is_containment(options)
    plan = _placeholder_plan(options) if options["exact"] or contained else _plan(options)
    seed = check_seed("seed", options["seed"])
    elements = make_elements(options, seed)
    _check_weights(options, fractional=elements is not None and elements.factors is not None)
    _check_values(options)
    if of_frame and options["shingle"] == "set" and options["bag"]:
        raise ConfigError("bag must be left out with sets of a DataFrame, got True")
    rule = KeepRule.of(options["keep"], options["prefer"], options["protect"])
    settings = SearchSettings(
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
        prefer=rule.prefer,
        protect=rule.protect or None,
        max_bucket=options["max_bucket"],
        exact=options["exact"] or contained,
        measure=options["measure"],
        discount=options["discount"],
        within=options["within"],
        across=options["across"],
    )
    if options["frequencies"] is None:
        return settings
    table = FrequencyTable.load(options["frequencies"])
    table.check_elements(settings.element_settings)
    return replace(settings, frequencies=table)


def _check_weights(options: DedupOptions, *, fractional: bool) -> None:
    """Raise if a setting contradicts weights of elements, or needs a discount.

    Args:
        options: All settings of a call.
        fractional: Whether a field has a weight that is not a whole number.
    """
    if options["discount"] == "none":
        _refuse(options, "without discount common", "frequencies", "save_frequencies")
    context = "discount common" if options["discount"] == "common" else "weights that are not whole numbers"
    if options["discount"] == "none" and not fractional:
        return
    for name in ("measure", "scheme", "verify"):
        value = _value(options, name)
        if value != DEFINITIONS[name].default:
            raise ConfigError(f"{name} must be {DEFINITIONS[name].default} with {context}, got {show(value)}")
    if options["save_frequencies"] is not None:
        check_new_table(options["save_frequencies"])


def _check_values(options: DedupOptions) -> None:
    """Raise if a column whose values decide what is compared is no name, or cannot be known."""
    for name in ("within", "across"):
        column = _value(options, name)
        if column is None:
            continue
        if not (isinstance(column, str) and column):
            raise ConfigError(f"{name} must be the name of a column, got {show(column)}")
        _refuse(options, f"with {name}: a group of rows has no value of its own", "group_by", "transpose")
    if options["within"] is not None:
        _refuse(options, "with within, which compares only equal values", "across")
    if options["across"] is not None and cast("dict[str, Any]", options).get("among") is not None:
        raise ConfigError(f"across must be left out with among, got {show(options['across'])}; link the tables without")


class PassageSettings(NamedTuple):
    """What counts as a repeated passage.

    Attributes:
        min_tokens: Tokens of the shortest passage or unit.
        unit: Unit that repeats as a whole; None for any run of tokens.
        min_count: How often a unit occurs at least.
    """

    min_tokens: int
    unit: UnitName | None = None
    min_count: int = 2


def passage_settings(options: Mapping[str, Any], call: type = PassagesOptions) -> PassageSettings:
    """Return what counts as a repeated passage, after checks and with defaults.

    Args:
        options: The given settings.
        call: The option class of the call; a setting that it lacks is refused.
    """
    given = with_defaults(call, options)
    tokens, unit, count = given["min_tokens"], given["unit"], given["min_count"]
    check_setting(definitions(PassagesOptions)["unit"], unit)
    if unit is None and count is not None:
        raise ConfigError(
            f"min_count must be left out for passages, got {show(count)}; set unit='line', 'sentence' or 'paragraph'"
        )
    most, usual = (_kernel.MAX_PASSAGE_TOKENS, 50) if unit is None else (_kernel.MAX_UNIT_TOKENS, 1)
    tokens = check_integer("min_tokens", usual if tokens is None else tokens, 1, most)
    return PassageSettings(tokens, unit, check_integer("min_count", 2 if count is None else count, 2, 2**32 - 1))


class NearestSettings(NamedTuple):
    """What a search for the nearest documents looks for.

    Attributes:
        top: Number of nearest documents of each document.
        at_least: Minimum similarity; 0 if any element in common is enough.
        mutual: Whether both documents of a pair must be among the nearest of the other.
        one_to_one: Whether a document is in one pair at most.
    """

    top: int = 5
    at_least: float = 0.0
    mutual: bool = False
    one_to_one: bool = False


def nearest_settings(options: Mapping[str, Any]) -> NearestSettings:
    """Return what a search for the nearest documents looks for, after checks and with defaults.

    Raises:
        ConfigError: If a setting is unknown, has a wrong value, or has no meaning here.
    """
    given = with_defaults(NearestOptions, options)
    if given["engine"] != "local":
        raise ConfigError(f"engine must be local for nearest documents, got {show(given['engine'])}")
    floor = given["at_least"]
    if floor is not None and (isinstance(floor, bool) or not isinstance(floor, (int, float)) or not 0 <= floor <= 1):
        raise ConfigError(f"at_least must be a number from 0 to 1, got {show(floor)}")
    flags = (check_type(name, given[name], bool) for name in ("mutual", "one_to_one"))
    return NearestSettings(check_integer("top", given["top"], 1, MOST_NEAREST), float(floor or 0), *flags)


def _is_containment(options: DedupOptions) -> bool:
    """Return whether one document is to lie in the other; raise if a setting has no meaning then."""
    if options["measure"] != "containment":
        return False
    if options["group"] != "star":
        rule = "group must be star with measure containment, which removes a document only for one that it lies in"
        raise ConfigError(f"{rule}; got {show(options['group'])}")
    return True


def _plan(options: DedupOptions) -> Plan:
    slots, bands, rows = options["slots"], options["bands"], options["rows"]
    return make_plan(options["threshold"], options["recall"], slots=slots, bands=bands, rows=rows)


def _placeholder_plan(options: DedupOptions) -> Plan:
    """Return a plan of one slot, which an exact join ignores."""
    for name in ("recall", "scheme", "slots", "bands", "rows", "verify"):
        value = _value(options, name)
        if value != DEFINITIONS[name].default:
            setting = "measure containment" if options["measure"] == "containment" else "exact"
            rule = f"{name} must be left out with {setting}, which finds and compares all"
            raise ConfigError(f"{rule}; got {show(value)}")
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
    for name in ("group_by", "item", "weight"):
        value = _value(options, name)
        if value is not None and not (isinstance(value, str) and value):
            raise ConfigError(f"{name} must be a name, got {show(value)}")
    check_separator(options["separator"])
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


def check_separator(separator: object) -> str | None:
    """Return a separator of items, or None."""
    if separator is not None and not (isinstance(separator, str) and separator):
        raise ConfigError(f"separator must be a string, got {show(separator)}")
    return separator


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
    columns = Columns.of(options["text_column"], options["id_column"], values=settings.value_columns)
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


def second_table(options: DedupOptions) -> DocumentSource | None:
    """Return the second of two tables to link; None for a search in one table.

    Raises:
        ConfigError: If a setting has no meaning for two tables.
    """
    second: DocumentSource | None = cast("dict[str, Any]", options).get("among")
    if second is None:
        return None
    if options["engine"] == "spark":
        raise ConfigError("among must be left out with engine spark, which does not link tables yet")
    for name in ("group_by", "transpose"):
        if _value(options, name):
            rule = f"{name} must be left out with among, which does not group rows yet"
            raise ConfigError(f"{rule}, got {show(_value(options, name))}; give rows with lists of items")
    return second


def contamination_rule(options: Mapping[str, Any]) -> ContaminationRule:
    """Return the rule of a decontamination.

    Raises:
        ConfigError: If a setting breaks its rule.
    """
    for name in ("min_share", "common_share"):
        value = options[name]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
            raise ConfigError(f"{name} must be a number above 0 and at most 1, got {show(value)}")
    number = options["min_ngrams"]
    return ContaminationRule(
        action=options["action"],
        ngram=check_integer("ngram", options["ngram"], _kernel.ITEM_TOKENS, _kernel.MAX_NGRAM),
        min_share=float(options["min_share"]),
        min_ngrams=None if number is None else check_integer("min_ngrams", number, 1, 2**31 - 1),
        common_share=float(options["common_share"]),
        common_count=check_integer("common_count", options["common_count"], 0, 2**31 - 1),
    )


def eval_columns(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return the columns of evaluation items, given as a list or separated by commas.

    Raises:
        ConfigError: If there is none, one is given twice, or a name is empty.
    """
    names = given.split(",") if isinstance(given, str) else list(given) if isinstance(given, (list, tuple)) else []
    if not names or len(set(names)) < len(names) or not all(isinstance(name, str) and name for name in names):
        raise ConfigError(f"eval_columns must be different names such as question,answer, got {show(given)}")
    return tuple(names)
