"""First stage: settings in; what makes sets of rows out, or nothing where they are texts, which a shingler cuts."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from minwise.config import check_choice, check_seed, show
from minwise.errors import ConfigError
from minwise.formats.source import Columns
from minwise.stages.elements import Elements
from minwise.stages.items import ItemLists, ItemSets
from minwise.stages.members import Members
from minwise.stages.records import Records, parse_fields
from minwise.stages.shingle import Shingler

__all__ = ["choose_elements"]

# What a shingle is if nothing is said of it.
USUAL = "word:5"


class FirstSettings(Protocol):
    """The settings that decide it, as :class:`minwise.options.Options` has them."""

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
