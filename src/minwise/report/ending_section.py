"""Section about what a run did with its clusters: copies, marks, weights, votes and a target."""

from collections.abc import Iterator, Mapping
from typing import Any

from minwise._internal.formatting import plural
from minwise._internal.html import escape, section

__all__ = ["ending_section", "ending_sentences"]

Values = Mapping[str, Any]


def ending_section(report: Values) -> str:
    """Return the section; empty if one document of each cluster was kept and no column was added."""
    sentences = [escape(sentence) for sentence in ending_sentences(report)]
    return section("endings", "What was done with the clusters", _list(sentences), "neutral") if sentences else ""


def _list(items: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"


def ending_sentences(report: Values) -> Iterator[str]:
    """Yield what a run did with its clusters, a sentence for each setting."""
    settings = report["settings"]
    if settings.get("copies"):
        yield f"Up to {plural(settings['copies'], 'document')} of each cluster were kept, the first in keep order."
    if settings.get("drop_all"):
        yield "No document of a cluster of two or more was kept."
    if settings.get("mark"):
        yield "Rows were marked: all rows are in the directory kept, and the counts say what would be kept and removed."
    if settings.get("votes"):
        yield f"Votes of a cluster: the number of distinct values of {settings['votes']} in it."
    yield from _weights(report)
    yield from _target(report)


def _weights(report: Values) -> Iterator[str]:
    weights = report.get("weights")
    if weights:
        mean = f", on average {weights['total'] / weights['rows']:.4g}" if weights["rows"] else ""
        total = f"{plural(weights['rows'], 'kept row')} together weigh {weights['total']:,.6g}{mean}"
        yield f"Column {weights['name']} = {weights['expression']}: {total}."


def _target(report: Values) -> Iterator[str]:
    target = report.get("target")
    if target:
        wanted = f"{plural(target['documents'], 'document')} {'was' if target['documents'] == 1 else 'were'} wanted"
        yield f"{wanted}: the threshold {target['threshold']:g} was chosen, which leaves {target['kept']:,}."
