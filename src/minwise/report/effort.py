"""Effort: what a run took in; its stages, time and memory out."""

from collections.abc import Mapping
from typing import Any

from minwise.report.charts import share_bar, with_bar
from minwise.report.html import escape, section
from minwise.report.tables import table
from minwise.report.wording import duration, plural, share, size

__all__ = ["effort"]

Values = Mapping[str, Any]

# A stage that took nearly no time has a bar, too: this share of the whole.
LEAST_BAR = 0.004


def effort(run: Values) -> str:
    """Stage timings with bars, and the peak of memory against the limit; nothing if nothing is known of the run."""
    parts = [_stages(run), _memory(run)]
    if not any(parts):
        return ""
    again = " Pieces of an earlier run were used again." if run.get("resumed") else ""
    threads = f" on {plural(run['threads'], 'thread')}" if run.get("threads") else ""
    total = f"<p>{duration(run['seconds'])} in all{threads}.{again}</p>" if run.get("seconds") is not None else ""
    return section("effort", "Time and memory", total + "".join(parts))


def _stages(run: Values) -> str:
    stages = run.get("stages") or []
    whole = max(run.get("seconds") or 0.0, sum(one["seconds"] for one in stages))
    if not stages or not whole:
        return ""
    rows = [
        [
            escape(one["stage"]),
            duration(one["seconds"]),
            with_bar(max(one["seconds"] / whole, LEAST_BAR), "bar", share(one["seconds"], whole)),
        ]
        for one in stages
    ]
    return table("Stages", ["stage", "time", "share of the time"], rows)


def _memory(run: Values) -> str:
    """The peak against the limit; one that the process had before the run began says nothing of the run."""
    peak, limit = run.get("peak_memory_bytes"), run.get("memory_limit_bytes")
    if not peak or not limit:
        return ""
    before = run.get("peak_memory_before_bytes") or 0
    if peak <= before:
        words = f"Peak memory {size(peak)}: the process had already held that much before the run began"
        return f'<div class="memory"><p>{words}. {size(limit)} allowed.</p></div>'
    held = f"; before the run began, the process had held {size(before)}" if before > limit else ""
    bar = share_bar((min(1.0, peak / limit), "bad" if peak > limit else "bar"))
    return f'<div class="memory"><p>Peak memory {_against(peak, limit)}{held}.</p>{bar}</div>'


def _against(peak: int, limit: int) -> str:
    """The peak beside the limit: a share of it, or how many times as much."""
    if peak <= limit:
        return f"{size(peak)} of {size(limit)} allowed ({share(peak, limit)})"
    times = peak / limit
    more = f"{times:.1f} times" if times >= 1.05 else "slightly more than"
    return f"{size(peak)}, {more} the {size(limit)} allowed"
