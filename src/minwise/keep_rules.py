"""Keep rules: which document of a cluster is kept, and which documents are never removed.

A rule has three parts, in the order in which they decide: documents that ``protect`` names are never removed, values of
the column of ``prefer`` come in the order of its list, and the keys of ``keep`` decide among equals.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from minwise.checks import check_type, show
from minwise.errors import ConfigError
from minwise.inputs.document_values import ValueColumn, distinct_columns, label

__all__ = ["KeepKey", "KeepRule", "LabelRule", "keep_keys"]

# Keys that leave no ties: documents in order, or in reverse order.
TOTAL = ("first", "last")
POLICIES = (*TOTAL, "longest", "shortest")
PREFER_RULE = "prefer must be a column and values such as source=wiki,books"
PROTECT_RULE = "protect must be a column and a value such as source=wiki"


class KeepKey(NamedTuple):
    """One key of ``keep``.

    Attributes:
        policy: ``first``, ``last``, ``longest``, ``shortest``, ``max`` or ``min``.
        column: The column that ``max`` and ``min`` compare; empty for the others.
    """

    policy: str
    column: str = ""


class LabelRule(NamedTuple):
    """A column and the labels that a rule names.

    Attributes:
        column: The column.
        labels: Its values as strings, each once.
    """

    column: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepRule:
    """Which document of a cluster is kept.

    Attributes:
        keys: The keys in the order in which they decide; document order decides after all of them.
        prefer: The column whose first labels are preferred to its others; None for no preference.
        protect: Labels of documents that are never removed, by column.
    """

    keys: tuple[KeepKey, ...] = (KeepKey("first"),)
    prefer: LabelRule | None = None
    protect: tuple[LabelRule, ...] = ()

    @classmethod
    def of(cls, keep: object, prefer: object = None, protect: object = None) -> "KeepRule":
        """Return the rule of the settings ``keep``, ``prefer`` and ``protect``.

        Raises:
            ConfigError: If a setting breaks its rule.
        """
        return cls(keys=keep_keys(keep), prefer=_preference(prefer), protect=_protection(protect))

    @property
    def sort_keys(self) -> tuple[KeepKey, ...]:
        """The keys that may leave ties."""
        return tuple(key for key in self.keys if key.policy not in TOTAL)

    @property
    def last_first(self) -> bool:
        """Whether later documents are preferred where all other keys are equal."""
        return self.keys[-1].policy == "last"

    @property
    def value_columns(self) -> tuple[ValueColumn, ...]:
        """The columns whose values decide."""
        labels = [*([] if self.prefer is None else [self.prefer]), *self.protect]
        ordered = (ValueColumn(key.column) for key in self.keys if key.column)
        return distinct_columns([*ordered, *(ValueColumn(rule.column, is_label=True) for rule in labels)])

    def to_dict(self) -> dict[str, Any]:
        """Return the settings ``prefer`` and ``protect``, as far as they are given, as plain values."""
        prefer = {} if self.prefer is None else {"prefer": {self.prefer.column: list(self.prefer.labels)}}
        protect = {rule.column: list(rule.labels) for rule in self.protect}
        return {**prefer, **({"protect": protect} if protect else {})}


def keep_keys(keep: object) -> tuple[KeepKey, ...]:
    """Return the keys of the setting ``keep``.

    Raises:
        ConfigError: If it breaks its rule.
    """
    given = check_type("keep", keep, str).split(",")
    keys = tuple(_key(part.strip() if len(given) > 1 else part, keep) for part in given)
    total = next((key.policy for key in keys[:-1] if key.policy in TOTAL), None)
    if total is not None:
        raise ConfigError(f"keep must have {total} as its last key, because it leaves no ties, got {show(keep)}")
    return keys


def _key(text: str, keep: object) -> KeepKey:
    policy, colon, column = text.partition(":")
    if (policy in POLICIES and not colon) or (policy in ("max", "min") and column):
        return KeepKey(policy, column)
    rule = "keep must be first, last, longest, shortest, max:COL or min:COL"
    several = ", or several of these separated by commas" if text != keep else ""
    raise ConfigError(f"{rule}{several}, got {show(keep)}")


def _preference(given: object) -> LabelRule | None:
    """Return the rule of ``COL=VALUE,…`` or of a mapping of a column to its values."""
    if given is None:
        return None
    if isinstance(given, str):
        column, _, listed = given.partition("=")
        rule = LabelRule(column, tuple(listed.split(",")))
    elif isinstance(given, Mapping) and len(given) == 1:
        ((column, values),) = given.items()
        rule = LabelRule(column, _labels(values, PREFER_RULE, given))
    else:
        raise ConfigError(f"{PREFER_RULE}, got {show(given)}")
    if not (isinstance(rule.column, str) and rule.column and all(rule.labels)) or not rule.labels:
        raise ConfigError(f"{PREFER_RULE}, got {show(given)}")
    if len(set(rule.labels)) < len(rule.labels):
        raise ConfigError(f"prefer must name each value once, got {show(given)}")
    return rule


def _protection(given: object) -> tuple[LabelRule, ...]:
    """Return the rules of ``COL=VALUE``, of several, or of a mapping of columns to a value or several."""
    if given is None:
        return ()
    labels: dict[str, list[str]] = {}
    for column, label_ in _protected(given):
        if not (isinstance(column, str) and column and label_):
            raise ConfigError(f"{PROTECT_RULE}, got {show(given)}")
        labels.setdefault(column, []).append(label_)
    return tuple(LabelRule(column, tuple(dict.fromkeys(found))) for column, found in labels.items())


def _protected(given: object) -> Iterable[tuple[Any, str]]:
    if isinstance(given, Mapping):
        for column, values in given.items():
            listed = values if isinstance(values, (list, tuple)) else [values]
            yield from ((column, found) for found in _labels(listed, PROTECT_RULE, given))
        return
    for text in [given] if isinstance(given, str) else given if isinstance(given, (list, tuple)) else [None]:
        column, _, value = text.partition("=") if isinstance(text, str) else ("", "", "")
        if not (column and value):
            raise ConfigError(f"{PROTECT_RULE}, got {show(text if isinstance(text, str) else given)}")
        yield column, value


def _labels(values: object, rule: str, given: object) -> tuple[str, ...]:
    """Return values as labels."""
    found = [label(value) for value in values] if isinstance(values, (list, tuple)) else [None]
    if None in found:
        raise ConfigError(f"{rule}, got {show(given)}")
    return tuple(value for value in found if value is not None)
