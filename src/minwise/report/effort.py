"""Effort: what a run took in; its stages, time and memory out."""

from collections.abc import Mapping
from typing import Any

from minwise.report.charts import share_bar, with_bar
from minwise.report.html import escape, section
from minwise.report.tables import table
from minwise.report.wording import duration, plural, share, size

__all__ = ["effort"]

Values = Mapping[str, Any]


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
    longest = max((one["seconds"] for one in stages), default=0.0)
    if not longest:
        return ""
    whole = run.get("seconds") or sum(one["seconds"] for one in stages)
    rows = [
        [
            escape(one["stage"]),
            duration(one["seconds"]),
            with_bar(max(one["seconds"] / longest, 0.004), "bar", share(min(one["seconds"], whole), whole)),
        ]
        for one in stages
    ]
    return table("Stages", ["stage", "time", "share of the time"], rows)


def _memory(run: Values) -> str:
    peak, limit = run.get("peak_memory_bytes"), run.get("memory_limit_bytes")
    if not peak or not limit:
        return ""
    over = peak > limit
    words = f"Peak memory {size(peak)} of {size(limit)} allowed ({share(peak, limit)})"
    return (
        f'<div class="memory"><p>{words}{", more than allowed" if over else ""}.</p>'
        f"{share_bar((min(1.0, peak / limit), 'bad' if over else 'bar'))}</div>"
    )
