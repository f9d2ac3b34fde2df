"""Distribution sections: charts of pair similarities and cluster sizes."""

import math
from collections.abc import Mapping
from typing import Any

from minwise._internal.charts import Bar, Tick, chart, draw_bars, linear_ticks, log_height, log_ticks, vertical_line
from minwise._internal.formatting import count_element, format_count, format_percent, plural
from minwise._internal.html import details, section, table

__all__ = ["cluster_size_section", "similarity_section", "threshold_section"]

Values = Mapping[str, Any]

BINS = 100
# Minimum number of bars for which the chart has space; fewer bars would be too wide.
LEAST_BARS = 8
# Maximum number of labels below the bars of sizes, which fit on a narrow screen.
MOST_RANGES = 6
# Ranges that are labelled with both ends: five of them would touch on a narrow screen.
MOST_FULL_RANGES = 4


def similarity_section(report: Values) -> str:
    """Return a histogram of pair similarities from just below the threshold; empty if they are not known."""
    found = report.get("similarities")
    if found is None:
        return ""
    estimated = report["settings"]["verify"] == "signature"
    measure = report["settings"].get("measure", "similarity")
    title = f"{measure.capitalize()} of pairs" + (" (estimates)" if estimated else "")
    first, threshold = math.floor(found["from"] * BINS + 1e-9), report["settings"]["threshold"]
    rows = [(number / BINS, (number + 1) / BINS, found["counts"][number]) for number in range(first, BINS)]
    if not any(count for _, _, count in rows):
        return section("similarities", title, '<p class="quiet">No pairs near the threshold.</p>')
    below = sum(count for _, end, count in rows if _is_below(end, threshold))
    reach = sum(count for _, _, count in rows) - below
    description = (
        f"Candidate pairs in bins of 0.01 from {found['from']:g}, without pairs of identical documents. "
        f"About {plural(reach, 'pair')} at or above the threshold {threshold:g}, {below:,} just below it."
        + _sample_note(report)
    )
    drawn = chart(
        "similarity-chart",
        title,
        description,
        [*_similarity_bars(rows, threshold), *vertical_line(_x(threshold, rows[0][0]), f"threshold {threshold:g}")],
        x_ticks=_similarity_ticks(rows[0][0]),
        y_ticks=linear_ticks(max(count for _, _, count in rows)),
        x_label=measure + (", estimated from signatures" if estimated else ""),
        y_label="pairs",
    )
    legend = (
        '<p class="key"><span><span class="swatch bar"></span>near-duplicates</span> '
        '<span><span class="swatch below"></span>just below the threshold</span></p>'
    )
    exact = table(
        f"Pairs by {measure}", [measure, "pairs"], ([f"{a:.2f} – {b:.2f}", count_element(n)] for a, b, n in rows)
    )
    note = f'<p class="quiet">{sample}</p>' if (sample := _sample_note(report)) else ""
    return section("similarities", title, f"{note}{legend}{drawn}{details('Show numbers', exact)}")


def _sample_note(report: Values) -> str:
    """Return how pairs were counted of which only a sample was compared; empty if all pairs were compared."""
    one_in = report.get("pairs", {}).get("sampled_one_in", 1)
    if one_in == 1:
        return ""
    return (
        f" Pairs of two removed documents do not affect the result; one in {one_in:,} of them was compared and counts "
        f"{one_in:,} times."
    )


def cluster_size_section(report: Values) -> str:
    """Return a bar chart of the number of clusters by size; both axes are logarithmic."""
    title, sizes = "Cluster sizes", report["clusters"].get("sizes")
    if sizes is None:
        return ""
    if not sizes:
        return section("sizes", title, '<p class="quiet">No near-duplicates were found.</p>')
    most, slots = max(size["clusters"] for size in sizes), max(LEAST_BARS, len(sizes))
    number_of, largest = report["clusters"]["of_two_or_more"], report["clusters"]["largest"]
    summary = f"{plural(number_of, 'cluster')}; the largest has {plural(largest, 'document')}"
    drawn = chart(
        "size-chart",
        title,
        f"{summary}, including the kept one. The height is logarithmic.",
        draw_bars(_size_bar(number, size, most, slots) for number, size in enumerate(sizes)),
        x_ticks=_size_ticks(sizes, slots),
        y_ticks=log_ticks(most),
        x_label="documents in the cluster" + ("" if len(sizes) <= MOST_FULL_RANGES else ", up to"),
        y_label="clusters (logarithmic)",
    )
    exact = table(
        "Clusters by size",
        ["documents", "clusters"],
        ([_range(size), count_element(size["clusters"])] for size in sizes),
    )
    return section("sizes", title, f'<p class="key">{summary}</p>{drawn}{details("Show numbers", exact)}')


def threshold_section(report: Values) -> str:
    """Return a bar chart of the documents that each threshold from the one of the run on would remove.

    Empty if it is not known, if there is no higher one, or if none removes a document.
    """
    if report["settings"]["verify"] != "none" and _sample_note(report):
        note = (
            "Not counted: this run compared only the pairs that decide its result. <code>minwise thresholds</code> "
            "counts them, and <code>minwise rethreshold</code> writes the result for a higher threshold."
        )
        return section("thresholds", "Documents removed by threshold", f'<p class="quiet">{note}</p>')
    steps = report.get("thresholds") or []
    most = max((step["removed"] for step in steps), default=0)
    if not most or len(steps) < 2:
        return ""
    title, documents = "Documents removed by threshold", report["counts"]["documents"]
    first, last = steps[0], steps[-1]
    summary = (
        f"This run, with a threshold of {first['threshold']:g}, removes {plural(first['removed'], 'document')}; a "
        f"threshold of 1 would remove {last['removed']:,}. The counts are exact for the pairs that this run found. "
        "<code>minwise rethreshold</code> writes the result for a higher threshold."
    )
    drawn = chart(
        "threshold-chart",
        title,
        f"Documents removed at each threshold, out of {documents:,}; the first bar is this run.",
        draw_bars(_threshold_bar(number, step, most, len(steps)) for number, step in enumerate(steps)),
        x_ticks=_threshold_ticks(steps),
        y_ticks=linear_ticks(most),
        x_label="threshold",
        y_label="documents removed",
    )
    rows = (
        [f"{step['threshold']:g}", count_element(step["removed"]), format_percent(step["removed"], documents)]
        for step in steps
    )
    exact = table("Documents removed by threshold", ["threshold", "removed", "share"], rows)
    return section("thresholds", title, f'<p class="quiet">{summary}</p>{drawn}{details("Show numbers", exact)}')


def _threshold_bar(number: int, step: Values, most: int, steps: int) -> Bar:
    slots = max(LEAST_BARS, steps)
    tooltip = f"threshold {step['threshold']:g}: {plural(step['removed'], 'document')} removed"
    return Bar((number + 0.08) / slots, (number + 0.92) / slots, step["removed"] / most, "bar", tooltip)


def _threshold_ticks(steps: list[dict[str, Any]]) -> list[Tick]:
    """Return the threshold below each bar, or below some of them if there are too many for a narrow screen."""
    slots, every = max(LEAST_BARS, len(steps)), math.ceil(len(steps) / MOST_RANGES)
    return [Tick((number + 0.5) / slots, f"{steps[number]['threshold']:g}") for number in range(0, len(steps), every)]


def _is_below(end: float, threshold: float) -> bool:
    """Return whether a bin ends at or below the threshold; the bin that contains it is above."""
    return end <= threshold + 1e-9


def _x(similarity: float, start: float) -> float:
    return (similarity - start) / (1 - start)


def _similarity_bars(rows: list[tuple[float, float, int]], threshold: float) -> list[str]:
    start, most = rows[0][0], max(count for _, _, count in rows)
    return draw_bars(
        Bar(
            _x(begin, start),
            _x(end, start),
            count / most,
            "below" if _is_below(end, threshold) else "bar",
            f"{begin:.2f} to {end:.2f}: {plural(count, 'pair')}",
        )
        for begin, end, count in rows
    )


def _similarity_ticks(start: float) -> list[Tick]:
    """Return a tick every 0.05, 0.1 or 0.2, so that they fit on a narrow screen."""
    step = next(step for step in (1, 2, 5, 10, 20) if (BINS - start * BINS) / step <= 6)
    return [
        Tick(_x(number / BINS, start), f"{number / BINS:g}")
        for number in range(BINS, -1, -step)
        if number / BINS >= start
    ]


def _size_bar(number: int, size: Values, most: int, slots: int) -> Bar:
    tooltip = f"{_range(size)} documents: {plural(size['clusters'], 'cluster')}"
    return Bar((number + 0.08) / slots, (number + 0.92) / slots, log_height(size["clusters"], most), "bar", tooltip)


def _size_ticks(sizes: list[dict[str, Any]], slots: int) -> list[Tick]:
    """Return the range below each bar, or the upper ends of some ranges if there are too many."""
    if len(sizes) <= MOST_FULL_RANGES:
        return [Tick((number + 0.5) / slots, _range(size)) for number, size in enumerate(sizes)]
    step = math.ceil(len(sizes) / MOST_RANGES)
    return [Tick((number + 0.5) / slots, format_count(sizes[number]["to"])) for number in range(0, len(sizes), step)]


def _range(size: Values) -> str:
    return f"{size['from']:,}" if size["from"] == size["to"] else f"{size['from']:,}–{size['to']:,}"
