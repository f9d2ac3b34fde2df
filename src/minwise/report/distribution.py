"""Distribution: a report in, charts of how similar pairs are and how large clusters out."""

import math
from collections.abc import Mapping
from typing import Any

from minwise._internal.charts import Bar, Tick, bars, chart, even_ticks, line_at, log_height, log_ticks
from minwise._internal.formatting import amount, number, plural
from minwise._internal.html import folded, section, table

__all__ = ["cluster_sizes", "similarities"]

Values = Mapping[str, Any]

BINS = 100
# Fewer bars than this would look like walls: the room of the missing ones stays empty.
LEAST_BARS = 8
# Numbers below the bars of sizes that stand beside each other on a narrow screen.
MOST_RANGES = 6


def similarities(report: Values) -> str:
    """A histogram of pair similarities, from just below the threshold up; nothing if they are not known."""
    found = report.get("similarities")
    if found is None:
        return ""
    estimated = report["settings"]["verify"] == "signature"
    title = "How similar the pairs are" + (" (estimates)" if estimated else "")
    first, threshold = math.floor(found["from"] * BINS + 1e-9), report["settings"]["threshold"]
    rows = [(place / BINS, (place + 1) / BINS, found["counts"][place]) for place in range(first, BINS)]
    if not any(count for _, _, count in rows):
        return section("similarities", title, '<p class="quiet">No pair of documents is close to the threshold.</p>')
    below = sum(count for _, end, count in rows if _is_below(end, threshold))
    reach = sum(count for _, _, count in rows) - below
    description = (
        f"Candidate pairs in bins of 0.01 from {found['from']:g} up, those of identical documents left out. "
        f"About {plural(reach, 'pair')} from the threshold {threshold:g} on, {below:,} just below it."
    )
    drawn = chart(
        "similarity-chart",
        title,
        description,
        [*_similarity_bars(rows, threshold), *line_at(_along(threshold, rows[0][0]), f"threshold {threshold:g}")],
        across=_similarity_ticks(rows[0][0]),
        up=even_ticks(max(count for _, _, count in rows)),
        across_label="similarity" + (", estimated from signatures" if estimated else ""),
        up_label="pairs",
    )
    legend = (
        '<p class="key"><span><span class="swatch bar"></span>near-duplicates</span> '
        '<span><span class="swatch below"></span>just below the threshold</span></p>'
    )
    exact = table(
        "Pairs by similarity", ["similarity", "pairs"], ([f"{a:.2f} – {b:.2f}", number(n)] for a, b, n in rows)
    )
    return section("similarities", title, f"{legend}{drawn}{folded('The numbers', exact)}")


def cluster_sizes(report: Values) -> str:
    """Bars of how many clusters there are of each size; both axes grow by powers."""
    title, sizes = "How large the clusters are", report["clusters"].get("sizes")
    if sizes is None:
        return ""
    if not sizes:
        return section("sizes", title, '<p class="quiet">No two documents are near-duplicates.</p>')
    most, room = max(one["clusters"] for one in sizes), max(LEAST_BARS, len(sizes))
    number_of, largest = report["clusters"]["of_two_or_more"], report["clusters"]["largest"]
    words = f"{plural(number_of, 'cluster')}; the largest has {plural(largest, 'document')}"
    drawn = chart(
        "size-chart",
        title,
        f"{words}, the kept one included. The height is logarithmic.",
        bars(_size_bar(place, one, most, room) for place, one in enumerate(sizes)),
        across=_size_ticks(sizes, room),
        up=log_ticks(most),
        across_label="documents in the cluster" + ("" if len(sizes) <= MOST_RANGES else ", up to"),
        up_label="clusters (logarithmic)",
    )
    exact = table(
        "Clusters by size", ["documents", "clusters"], ([_span(one), number(one["clusters"])] for one in sizes)
    )
    return section("sizes", title, f'<p class="key">{words}</p>{drawn}{folded("The numbers", exact)}')


def _is_below(end: float, threshold: float) -> bool:
    """Whether a bin ends before the threshold; one that holds it counts as above."""
    return end <= threshold + 1e-9


def _along(similarity: float, start: float) -> float:
    return (similarity - start) / (1 - start)


def _similarity_bars(rows: list[tuple[float, float, int]], threshold: float) -> list[str]:
    start, most = rows[0][0], max(count for _, _, count in rows)
    return bars(
        Bar(
            _along(begin, start),
            _along(end, start),
            count / most,
            "below" if _is_below(end, threshold) else "bar",
            f"{begin:.2f} to {end:.2f}: {plural(count, 'pair')}",
        )
        for begin, end, count in rows
    )


def _similarity_ticks(start: float) -> list[Tick]:
    """Every 0.05, 0.1 or 0.2, so that they have room on a narrow screen."""
    step = next(one for one in (1, 2, 5, 10, 20) if (BINS - start * BINS) / one <= 6)
    return [
        Tick(_along(place / BINS, start), f"{place / BINS:g}")
        for place in range(BINS, -1, -step)
        if place / BINS >= start
    ]


def _size_bar(place: int, one: Values, most: int, room: int) -> Bar:
    words = f"{_span(one)} documents: {plural(one['clusters'], 'cluster')}"
    return Bar((place + 0.08) / room, (place + 0.92) / room, log_height(one["clusters"], most), "bar", words)


def _size_ticks(sizes: list[dict[str, Any]], room: int) -> list[Tick]:
    """The range below each bar; where that is too much, the upper ends of some."""
    if len(sizes) <= MOST_RANGES:
        return [Tick((place + 0.5) / room, _span(one)) for place, one in enumerate(sizes)]
    every = math.ceil(len(sizes) / MOST_RANGES)
    return [Tick((place + 0.5) / room, amount(sizes[place]["to"])) for place in range(0, len(sizes), every)]


def _span(one: Values) -> str:
    return f"{one['from']:,}" if one["from"] == one["to"] else f"{one['from']:,}–{one['to']:,}"
