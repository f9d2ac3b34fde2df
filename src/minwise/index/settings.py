"""Settings of an index: what it was created with, and never changes."""

import secrets
from dataclasses import dataclass
from typing import Any

import orjson

from minwise import _kernel
from minwise.checks import check_choice, check_seed
from minwise.errors import ConfigError, FormatError, MismatchError
from minwise.settings import FindSettings
from minwise.sketches.planning import Plan
from minwise.sketches.planning import plan as make_plan
from minwise.sketches.schemes import FastSketch, MinHash
from minwise.text.shingling import Shingler

__all__ = ["FORMAT_VERSION", "IndexSettings"]

# Changes with the layout of any file or with the meaning of anything in one.
FORMAT_VERSION = 1
STORES = ("shingles", "text", "sketch")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """What decides the answers of an index.

    Attributes:
        find: Plan, shingler, scheme, seed and caps, as the batch engine has them.
        store: ``shingles`` keeps the shingle hashes of every document, ``text`` its text too, ``sketch`` only 16 bits
            of each slot.
        secret: Whether the seed was drawn at random, and is shown to nobody.
    """

    find: FindSettings
    shingler: Shingler
    store: str
    secret: bool

    @classmethod
    def chosen(
        cls,
        *,
        threshold: float,
        recall: float,
        shingle: str | Shingler,
        bag: bool,
        scheme: str,
        slots: int,
        bands: int | None,
        rows: int | None,
        seed: int | None,
        max_bucket: int,
        store: str,
    ) -> "IndexSettings":
        """The settings as a user gives them."""
        if shingle == "set":
            raise ConfigError("shingle must be word:N, char:N or byte:N for an index, got set")
        if isinstance(shingle, Shingler):
            raise ConfigError("shingle must be a string such as word:5 for an index, got a Shingler")
        given = secrets.randbits(64) if seed is None else check_seed("seed", seed)
        plan = make_plan(threshold, recall, slots=slots, bands=bands, rows=rows)
        shingler = Shingler(shingle, bag=bag, seed=given)
        return cls._of(plan, shingler, scheme, given, max_bucket, store, secret=seed is None)

    @classmethod
    def _of(
        cls, plan: Plan, shingler: Shingler, scheme: str, seed: int, max_bucket: int, store: str, *, secret: bool
    ) -> "IndexSettings":
        check_choice("store", store, STORES)
        verify = "signature" if store == "sketch" else "exact"
        find = FindSettings(
            plan=plan, shingler=shingler, scheme=scheme, seed=seed, verify=verify, max_bucket=max_bucket
        )
        return cls(find=find, shingler=shingler, store=store, secret=secret)

    @property
    def plan(self) -> Plan:
        """Threshold, bands and rows."""
        return self.find.plan

    @property
    def scheme(self) -> FastSketch | MinHash:
        """The scheme of the sketches, as many slots as the bands use."""
        kind = FastSketch if self.find.scheme == "fast" else MinHash
        return kind(slots=self.plan.slots, seed=self.find.seed)

    @property
    def exact(self) -> bool:
        """Whether similarities are exact."""
        return self.store != "sketch"

    def shown(self) -> dict[str, Any]:
        """The settings as anybody may see them: without a seed that is secret."""
        plan, shingles = self.plan, self.shingler.settings
        if self.secret:
            del shingles["seed"]
        seed = {} if self.secret else {"seed": self.find.seed}
        layout = {
            "threshold": plan.threshold,
            "bands": plan.bands,
            "rows": plan.rows,
            "wanted_recall": plan.wanted_recall,
        }
        return {
            **layout, **shingles, "scheme": self.find.scheme, "max_bucket": self.find.max_bucket, "store": self.store,
            "secret_seed": self.secret, **seed,
        }  # fmt: skip

    def encode(self) -> bytes:
        """The content of their row."""
        about = {"version": FORMAT_VERSION, "unicode_version": _kernel.UNICODE_VERSION}
        return orjson.dumps({**about, **self.shown(), "seed": self.find.seed})

    @classmethod
    def decode(cls, content: bytes) -> "IndexSettings":
        """The settings of a row's content.

        Raises:
            FormatError: If they are of another version.
            MismatchError: If texts were cut by another version of Unicode.
        """
        try:
            fields = orjson.loads(content)
            version, unicode_version = fields.pop("version"), fields.pop("unicode_version")
        except (AttributeError, KeyError, TypeError, ValueError):
            raise FormatError("the settings must be a JSON object with a version") from None
        if version != FORMAT_VERSION:
            raise FormatError(f"the index must be of format version {FORMAT_VERSION}, got {version}")
        if unicode_version != _kernel.UNICODE_VERSION:
            here = _kernel.UNICODE_VERSION
            raise MismatchError(f"texts must be cut by the same Unicode version: {unicode_version} there, {here} here")
        try:
            return cls._decoded(fields)
        except (KeyError, TypeError) as error:
            raise FormatError(f"the settings must have the fields of this version: {error}") from None

    @classmethod
    def _decoded(cls, fields: dict[str, Any]) -> "IndexSettings":
        names = ("threshold", "bands", "rows", "wanted_recall")
        plan = Plan(**{name: fields.pop(name) for name in names})
        scheme, max_bucket, store, secret = (
            fields.pop(name) for name in ("scheme", "max_bucket", "store", "secret_seed")
        )
        shingler = Shingler(fields.pop("shingle"), **fields)
        return cls._of(plan, shingler, scheme, shingler.seed, max_bucket, store, secret=secret)
