"""Audit command: the settings of a run in, what to type to have them audited out."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from minwise.errors import ConfigError
from minwise.plan import plan
from minwise.stages.shingle import NORMALISATION, Shingler

__all__ = ["audit_command"]

Values = Mapping[str, Any]

# Settings that an audit shares with a run, with the value that need not be typed.
DEFAULTS = {
    "threshold": 0.8,
    "shingle": "word:5",
    "bag": False,
    "separator": None,
    "fields": None,
    "weights": None,
    "html": False,
    "scheme": "fast",
    "seed": 1,
    "max_bucket": 2000,
}
# Settings of a shingler that only Python can give.
OF_SHINGLER = ("hash_bits", *NORMALISATION)


def audit_command(settings: Values, run: Values) -> str:
    """One line that audits a run's settings and writes audit.json: a command, or Python where no command can say it.

    Args:
        settings: The settings of report.json.
        run: What run.json holds; a part of it will do.
    """
    given = {**dict(_settings(settings)), **dict(_reading({**run, "fields": settings.get("fields")}))}
    shingler = [name for name in OF_SHINGLER if name in settings and settings[name] != getattr(Shingler, name)]
    if shingler:
        return _python(given, _shingler(settings, shingler))
    in_memory = any(not one.get("name") for one in run.get("inputs") or [])
    if in_memory or (settings["shingle"] == "set" and not run.get("inputs")):
        return _python(given)
    return _typed(given)


def _settings(settings: Values) -> Iterator[tuple[str, Any]]:
    """What differs from the defaults."""
    for name, usual in DEFAULTS.items():
        if settings.get(name, usual) != usual:
            yield name, settings[name]
    layout = {name: settings[name] for name in ("bands", "rows")}
    if layout != _usual_layout(settings["threshold"]):
        yield from layout.items()


def _usual_layout(threshold: float) -> dict[str, int]:
    """The layout that follows from a threshold alone; none if it is so low that no layout does."""
    try:
        usual = plan(threshold)
    except ConfigError:
        return {}
    return {"bands": usual.bands, "rows": usual.rows}


def _reading(run: Values) -> Iterator[tuple[str, Any]]:
    text = (run.get("columns") or {}).get("text") or ["text"]
    if list(text) != ["text"] and not run.get("fields"):
        yield "text_column", list(text)
    if run.get("format"):
        yield "format", run["format"]


def _typed(given: Values) -> str:
    words = ["minwise", "audit", "INPUT…"]
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        else:
            for one in value if isinstance(value, list) else [value]:
                words += [option, shlex.quote(str(one))]
    return " ".join([*words, "-o", "audit.json"])


def _python(given: Values, shingler: str = "") -> str:
    of_shingler = ("shingle", "bag") if shingler else ()
    words = [f"{name}={value!r}" for name, value in given.items() if name not in of_shingler]
    return f"mw.audit({', '.join(['INPUT', repr('audit.json'), *words, *([shingler] if shingler else [])])})"


def _shingler(settings: Values, names: list[str]) -> str:
    given = [name for name in ("bag", "seed") if settings[name] != getattr(Shingler, name)]
    words = [repr(settings["shingle"]), *(f"{name}={settings[name]!r}" for name in (*given, *names))]
    return f"shingle=mw.Shingler({', '.join(words)})"
