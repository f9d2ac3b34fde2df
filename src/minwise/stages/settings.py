"""Settings: everything that decides what the stages find, and which of it is kept."""

from dataclasses import dataclass
from typing import Any

from minwise import _kernel
from minwise.config import check_choice, check_type, check_whole, show
from minwise.errors import ConfigError
from minwise.plan import Plan
from minwise.stages.elements import Elements
from minwise.stages.shingle import Shingler

__all__ = ["FindSettings"]


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
