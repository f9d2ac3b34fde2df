"""Settings files: options of commands in TOML.

A file has keys for all commands at its top, and a table for each command, such as ``[dedup]`` or ``[index.create]``.
A key is the name of an option with underscores.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from minwise.checks import check_setting_names, show
from minwise.cli.help import option_key, options_by_heading
from minwise.cli.session import Session
from minwise.errors import ConfigError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["SettingsFileError", "Size", "as_toml", "set_defaults"]

# Options that a settings file cannot set.
EXCLUDED = ("config", "show_config", "help", "version")
# What stands between a name and its value where a table replaces a text.
MAPPING_SEPARATORS = {
    "spark_conf": "=",
    "weights": "=",
    "mark_names": "=",
    "fields": ":",
    "prefer": "=",
    "protect": "=",
}
PYPROJECT = "pyproject.toml"


class SettingsFileError(click.ClickException):
    """Error of a settings file."""

    exit_code = 2


class Size(click.types.StringParamType):
    """Number of bytes, or a text such as ``4GB``; the library parses it."""

    name = "size"


def set_defaults(context: click.Context, file: str | None) -> None:
    """Make the settings of a file the defaults of a command.

    Args:
        context: The context of the command.
        file: The file; None looks for one in the current directory.

    Raises:
        SettingsFileError: If a key is unknown, or a value has another type than its option.
    """
    found = _read(file) if file is not None else _find()
    if found is None:
        return
    name, settings = found
    context.default_map = dict(_defaults(context, name, settings))
    context.ensure_object(Session).settings_file = name if settings else None


def _find() -> tuple[str, Mapping[str, Any]] | None:
    """Return the settings of the current directory and the file that has them, if there is one."""
    if Path("minwise.toml").is_file():
        return _read("minwise.toml")
    path = Path(PYPROJECT)
    if not path.is_file() or b"tool.minwise" not in path.read_bytes():
        return None
    tools = _read(PYPROJECT)[1].get("tool")
    settings = tools.get("minwise") if isinstance(tools, dict) else None
    if settings is not None and not isinstance(settings, dict):
        raise SettingsFileError(f"{PYPROJECT}: tool.minwise must be a table of settings, got {show(settings)}")
    return None if settings is None else (f"[tool.minwise] of {PYPROJECT}", settings)


def _read(file: str) -> tuple[str, Mapping[str, Any]]:
    try:
        return file, tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # of bytes, syntax, numbers of too many digits, or nesting
        raise SettingsFileError(f"{file}: must be a TOML file: {' '.join(str(error).split())}") from None


def _defaults(context: click.Context, file: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the parameter and the value of every setting that the command has."""
    options = _options_by_key(context.command)
    for where, table, command in _levels(context, settings):
        _check_names(f"{file}: {where}", table, _keys(command), _tables(command))
        for key, value in table.items():
            if key in options and options[key].name is not None:
                yield str(options[key].name), _checked(context, options[key], value, f"{file}: {where}")


def _levels(context: click.Context, settings: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any], click.Command]]:
    """Yield the tables that apply to a command, the most general first: the name, the values and the command."""
    path = _path(context)
    for depth, level in enumerate(path):
        where = "".join(f"[{'.'.join(words)}] " for words in [_words(path)[:depth]] if words)
        tables = _tables(level.command)
        values = {key: value for key, value in settings.items() if key not in tables or not isinstance(value, dict)}
        yield where, values, level.command
        settings = next((settings[name] for name in _words(path)[depth : depth + 1] if name in settings), {})
        if not isinstance(settings, dict):
            return


def _path(context: click.Context) -> list[click.Context]:
    """Return the contexts from that of the program to that of the command."""
    return [*(_path(context.parent) if context.parent is not None else []), context]


def _words(path: list[click.Context]) -> list[str]:
    return [str(one.info_name) for one in path[1:]]


def _tables(command: click.Command) -> list[str]:
    return list(command.commands) if isinstance(command, click.Group) else []


def _keys(command: click.Command) -> list[str]:
    """Return the keys of a command, and of all below it."""
    below = command.commands.values() if isinstance(command, click.Group) else ()
    return list(dict.fromkeys([*_options_by_key(command), *(key for one in below for key in _keys(one))]))


def _options_by_key(command: click.Command) -> dict[str, click.Option]:
    options = {option_key(one): one for one in command.params if isinstance(one, click.Option)}
    return {key: option for key, option in options.items() if key not in EXCLUDED}


def _check_names(where: str, given: Mapping[str, Any], known: list[str], tables: list[str]) -> None:
    for name in tables:
        if name in given and name not in known:
            raise SettingsFileError(f"{where}{name} must be a table of settings, got {show(given[name])}")
    try:
        check_setting_names(given, [*known, *tables])
    except ConfigError as error:
        raise SettingsFileError(f"{where}{error}") from None


def _checked(context: click.Context, option: click.Option, value: object, where: str) -> object:
    """Return the value as the option takes it."""
    key = option_key(option)
    value = _as_text(key, value)
    values = value if option.multiple and isinstance(value, list) else [value]
    expected, kinds = _expected(option)
    if any(not isinstance(one, kinds) or (isinstance(one, bool) and bool not in kinds) for one in values):
        several = ", or a list of them" if option.multiple else ""
        raise SettingsFileError(f"{where}{key} must be {expected}{several}, got {show(value)}")
    try:
        option.type_cast_value(context, values if option.multiple else value)
    except click.BadParameter as error:
        raise SettingsFileError(f"{where}{key}: {error.message}") from None
    return values if option.multiple else value


def _as_text(key: str, value: object) -> object:
    """Return a table of names and values as the option takes it."""
    if key not in MAPPING_SEPARATORS or not isinstance(value, dict):
        return value
    pairs = [f"{name}{MAPPING_SEPARATORS[key]}{one}" for name, given in value.items() for one in _values(key, given)]
    return pairs if key in ("spark_conf", "protect") else " ".join(pairs)


def _values(key: str, given: object) -> list[object]:
    """Return the values of a name in a table: each of a list on its own, those to prefer together."""
    if not isinstance(given, list):
        return [given]
    return [",".join(map(str, given))] if key == "prefer" else given


def _expected(option: click.Option) -> tuple[str, tuple[type, ...]]:
    if option.is_flag:
        return "true or false", (bool,)
    if isinstance(option.type, click.types.IntParamType):
        return "a whole number", (int,)
    if isinstance(option.type, click.types.FloatParamType):
        return "a number", (int, float)
    return ('a size such as "4GB"', (int, str)) if isinstance(option.type, Size) else ("a string", (str,))


def as_toml(context: click.Context) -> str:
    """Return the effective settings of a command as a settings file, which has the same effect."""
    words = _words(_path(context))
    session = context.ensure_object(Session)
    origin = f"; defaults from {session.settings_file}" if session.settings_file else ""
    lines = [f"# settings of minwise {' '.join(words)}{origin}", f"[{'.'.join(words)}]"]
    given = {**context.params, "verbose": session.verbose, "log_format": session.log_format}
    for heading, options in options_by_heading(_options_by_key(context.command).values()).items():
        lines += ["", f"# {heading}"]
        lines += [_line(option_key(option), given.get(str(option.name))) for option in options]
    return "\n".join(lines)


def _line(key: str, value: object) -> str:
    if value is None or value == ():
        return f"# {key} is not set"
    return f"{key} = {_toml(value)}"


def _toml(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)
