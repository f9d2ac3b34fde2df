"""Endings: what a deduplication does with its clusters, as its settings say.

One search has many endings: keep one document of each cluster, or several, or none; mark all rows; weigh the kept
ones. None reads an input again. :mod:`minwise.results.removals` computes what is removed, and
:mod:`minwise.results.marks` the added columns.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from minwise.checks import check_integer, check_type, show
from minwise.errors import ConfigError
from minwise.results.weight_expression import WeightColumn, parse_weight
from minwise.settings import SearchSettings

__all__ = ["KEEP_ONE", "MARK_NAMES", "VOTES", "Ending", "ending_of"]

# Columns of marked rows, without that of votes. The similarity has the name that removed.parquet gives it.
MARK_NAMES = ("cluster", "cluster_size", "cluster_rank", "similarity", "kept")
VOTES = "votes"
# Settings that decide what a search reads, or which pairs it compares; all others only use its clusters.
SEARCHED = ("votes", "target")
MOST_COPIES = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What a deduplication does with its clusters.

    Attributes:
        copies: Number of documents of each cluster that are kept, the first in keep order.
        drop_all: Whether no document of a cluster of two or more is kept.
        mark: Names of the columns that all rows get, by their usual names; None if rows are not marked.
        weight: Column of weights that the kept rows get.
        votes: Column whose distinct values in each cluster are counted.
        target: Number of documents to keep, or their share if it is below 1.
    """

    copies: int = 1
    drop_all: bool = False
    mark: Mapping[str, str] | None = None
    weight: WeightColumn | None = None
    votes: str | None = None
    target: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that differ from their defaults as plain values, under their public names."""
        given = {
            "copies": self.copies if self.copies > 1 else None,
            "drop_all": self.drop_all or None,
            "mark": None if self.mark is None else True,
            "mark_names": {name: own for name, own in (self.mark or {}).items() if name != own} or None,
            "add_weight": None if self.weight is None else f"{self.weight.name}={self.weight.expression}",
            "votes": self.votes,
            "target": self.target,
        }
        return {name: value for name, value in given.items() if value is not None}

    @property
    def searched(self) -> dict[str, Any]:
        """The settings that differ from their defaults and decide what the search reads or compares."""
        return {name: value for name, value in self.to_dict().items() if name in SEARCHED}

    @property
    def note(self) -> dict[str, Any]:
        """What distinguishes the result from others of the same search; empty if it is the usual one."""
        given = {name: value for name, value in self.to_dict().items() if name not in SEARCHED}
        return {"ending": given} if given else {}

    @property
    def added_names(self) -> list[str]:
        """Names of the columns that rows get."""
        return [*(self.mark or {}).values(), *([] if self.weight is None else [self.weight.name])]

    def wanted(self, read: int) -> int:
        """Return the number of documents to keep of those that were read."""
        assert self.target is not None
        return round(self.target * read) if self.target < 1 else round(self.target)


# One document of each cluster is kept.
KEEP_ONE = Ending()


def ending_of(options: Mapping[str, Any], settings: SearchSettings) -> Ending:
    """Return the ending of a call, after checks.

    Args:
        options: All settings of the call.
        settings: The settings of its search.

    Raises:
        ConfigError: If a setting breaks its rule or contradicts another one.
    """
    copies = check_integer("copies", options["copies"], 1, MOST_COPIES)
    if check_type("drop_all", options["drop_all"], bool) and copies > 1:
        raise ConfigError(f"copies must be left out with drop_all, which keeps none of a cluster, got {copies}")
    votes = options["votes"]
    if votes is not None and not (isinstance(votes, str) and votes):
        raise ConfigError(f"votes must be a column, got {show(votes)}")
    ending = Ending(
        copies=copies,
        drop_all=options["drop_all"],
        mark=_mark_names(options, settings),
        weight=None if options["add_weight"] is None else parse_weight(options["add_weight"], votes=votes is not None),
        votes=votes,
        target=_target(options["target"], settings),
    )
    _refuse_repeated(ending.added_names)
    return ending


def _mark_names(options: Mapping[str, Any], settings: SearchSettings) -> dict[str, str] | None:
    """Return the names of the columns of marked rows; None if rows are not marked."""
    given = options["mark_names"]
    if not check_type("mark", options["mark"], bool):
        if given is not None:
            raise ConfigError(f"mark_names must be left out without mark, got {show(given)}; set mark=True")
        return None
    usual = {name: name for name in (*MARK_NAMES, *([VOTES] if options["votes"] is not None else []))}
    return usual | {"similarity": settings.similarity_name} | _renamed(given, usual)


def _renamed(given: object, usual: Mapping[str, str]) -> dict[str, str]:
    """Return the names of columns that are renamed, from a mapping or a text such as ``"cluster=dup_id kept=keep"``."""
    rule = f"mark_names must be such as 'cluster=dup_id kept=keep', of {', '.join(usual)}"
    if given is None:
        return {}
    if isinstance(given, Mapping):
        pairs = list(given.items())
    else:
        words = given.split() if isinstance(given, str) else []
        pairs = [(name, new if equals else None) for name, equals, new in (word.partition("=") for word in words)]
    valid = all(name in usual and isinstance(new, str) and new for name, new in pairs)
    if not pairs or not valid or len(dict(pairs)) < len(pairs):
        raise ConfigError(f"{rule}; got {show(given)}")
    return dict(pairs)


def _target(given: object, settings: SearchSettings) -> float | None:
    """Return the number or the share of documents to keep."""
    if given is None:
        return None
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
    if not is_number or not 0 < float(given) < float("inf"):  # type: ignore[arg-type]
        rule = "target must be a number of documents such as 1e6, or a share below 1"
        raise ConfigError(f"{rule}, got {show(given)}")
    if settings.verify == "none":
        raise ConfigError("verify must be exact or signature with target, which needs similarities, got none")
    return given  # type: ignore[return-value]


def _refuse_repeated(names: list[str]) -> None:
    """Raise if two added columns have one name."""
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                f"added columns must have different names, got {show(name)} twice; set mark_names or another name of"
                " add_weight"
            )
