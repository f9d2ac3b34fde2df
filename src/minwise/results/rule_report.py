"""Rules by labels in a report and in an explanation: what ``prefer`` and ``protect`` name, and whom they kept."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from minwise._internal.formatting import plural
from minwise.keep_rules import LabelRule
from minwise.results.removals import DedupDecision
from minwise.search.bands import FAULTY

__all__ = ["label_rules", "rule_columns", "rule_counts", "rule_notes", "rule_reason", "rule_warnings"]


def rule_counts(decision: DedupDecision) -> dict[str, Any]:
    """Return the key ``keep_rules`` of a report: the values that each rule names, with their rows; nothing without any.

    Of each value there is the number of readable rows of the input that have it, and how many of them are kept.
    """
    rule = decision.search.settings.keep_rule
    if rule.prefer is None and not rule.protect:
        return {}
    prefer = None if rule.prefer is None else _counted(decision, rule.prefer)
    return {"keep_rules": {"prefer": prefer, "protect": [_counted(decision, one) for one in rule.protect]}}


def _counted(decision: DedupDecision, rule: LabelRule) -> dict[str, Any]:
    documents = decision.search.documents
    own, readable = (
        documents.label_places(rule)[documents.protected :],
        documents.states[documents.protected :] != FAULTY,
    )
    rows, kept = (np.bincount(own[chosen], minlength=len(rule.labels)) for chosen in (readable, decision.keep))
    counted = zip(rule.labels, rows.tolist(), kept.tolist(), strict=False)  # without the rows of other values
    return {"column": rule.column, "values": [{"value": name, "rows": of, "kept": left} for name, of, left in counted]}


def rule_notes(counts: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each rule of a report that rows match."""
    rules = counts.get("keep_rules", {"prefer": None, "protect": []})
    for rule in rules["protect"]:
        for value in (value for value in rule["values"] if value["rows"]):
            yield f"protected: {plural(value['rows'], 'row')} with {rule['column']}={value['value']}, all kept"
    if rules["prefer"] is not None:
        column, values = rules["prefer"]["column"], [value for value in rules["prefer"]["values"] if value["rows"]]
        shown = (f"{column}={value['value']} ({value['kept']:,} of {value['rows']:,} rows kept)" for value in values)
        if values:
            yield f"preferred, in this order: {', '.join(shown)}"


def rule_warnings(counts: Mapping[str, Any]) -> Iterator[str]:
    """Yield a warning for each value that a rule names and no row has."""
    rules = counts.get("keep_rules", {"prefer": None, "protect": []})
    for name, listed in (("prefer", filter(None, [rules["prefer"]])), ("protect", rules["protect"])):
        for rule in listed:
            missing = [f"{rule['column']}={value['value']}" for value in rule["values"] if not value["rows"]]
            if missing:
                yield f"no row has {' or '.join(missing)}, named by {name}"


def label_rules(settings: Mapping[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield ``protect`` or ``prefer``, the column and its labels of each rule in the settings of a report."""
    for name in ("protect", "prefer"):
        yield from ((name, column, list(labels)) for column, labels in (settings.get(name) or {}).items())


def rule_columns(settings: Mapping[str, Any]) -> list[str]:
    """Return the columns of the rules in the settings of a report."""
    return list(dict.fromkeys(column for _, column, _ in label_rules(settings)))


def rule_reason(settings: Mapping[str, Any], labels: Mapping[str, str | None]) -> str:
    """Return which rule speaks for a document with these labels, in one sentence; empty if none does."""
    for name, column, named in label_rules(settings):
        label = labels.get(column)
        if label is None or label not in named:
            continue
        if name == "protect":
            return f"protected: rows with {column}={label} are never removed"
        return f"preferred: {column}={label} is number {named.index(label) + 1} of the {len(named)} preferred values"
    return ""
