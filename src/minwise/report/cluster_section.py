"""RunLimits: how much a page shows, and from where on it warns. Whoever fills it keeps to the same numbers."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from minwise._internal.formatting import format_percent, format_similarity, plural, render_code_spans, shorten_middle
from minwise._internal.html import escape, section
from minwise.comparison.alignment import decode_passages, texts_differ
from minwise.comparison.page import LEGEND, side_by_side
from minwise.comparison.passages import Passage, align_passages
from minwise.text.shingling import NORMALISATION, Shingler, ShingleSpans

__all__ = [
    "MANY_DOCUMENTS",
    "SHOWN_CLUSTERS",
    "SHOWN_MEMBERS",
    "SHOWN_PAIRS",
    "Texts",
    "just_below",
    "largest_clusters",
    "tick_box",
]

# A corpus from which on one cluster of more than a hundredth of it is worth a warning.
MANY_DOCUMENTS = 1000
# Of how many clusters texts are shown, of how many members beside the kept one, and of how many pairs.
SHOWN_CLUSTERS = 10
SHOWN_MEMBERS = 3
SHOWN_PAIRS = 10

Values = Mapping[str, Any]

# Characters of each text that are compared, its first ones: forty such pairs take 0.05 s.
COMPARED_CHARACTERS = 10_000
# Characters of them that are shown, those around the differences.
SHOWN_CHARACTERS = 4000
# Characters of a name above a column.
COLUMN_NAME = 80


@dataclass(frozen=True)
class Texts:
    """The texts that were read, and the settings they were compared with.

    Attributes:
        read: Texts by source and row.
        settings: The settings of the run.
        note: Why some texts are not there, in one sentence.
        root: The directory that all sources have in common; it need not be told again and again.
    """

    read: Mapping[tuple[str, int], str]
    settings: Values
    note: str = ""
    root: str = ""

    @property
    def exist(self) -> bool:
        """Whether the documents have texts at all; sets have none."""
        return bool(self.settings["shingle"] != "set")

    def differences(self, left: Values, right: Values) -> str:
        """Both texts side by side with what they share coloured; a quiet note where one of them is not there."""
        if not self.exist:
            return ""
        texts = [self.read.get((one["source"], one["row"])) for one in (left, right)]
        if texts[0] is None or texts[1] is None:
            return '<p class="quiet missing">The text is not here.</p>'
        names = (self._column(left), self._column(right))
        aligned = self._aligned(texts[0][:COMPARED_CHARACTERS], texts[1][:COMPARED_CHARACTERS])
        both = side_by_side(*aligned, names=names, max_chars=SHOWN_CHARACTERS)
        long = max(len(texts[0]), len(texts[1])) > COMPARED_CHARACTERS
        only = f'<p class="quiet missing">{_first_ones(*aligned)}</p>' if long else ""
        return f'{only}<div class="differences" tabindex="0" role="region" aria-label="Differences">{both}</div>'

    def _aligned(self, left: str, right: str) -> tuple[str, str, list[Passage]]:
        """Both texts as they can be shown, and what they share."""
        passages = align_passages(self._spans(left), self._spans(right))
        return decode_passages(left, right, passages, in_bytes=self._shingler.kind == "byte")

    def name(self, one: Values) -> str:
        """The id of a document; of one that is a path, the directory is quieter."""
        if one["id"] != one["source"]:
            return f'<span class="id">{shorten_middle(one["id"])}</span>'
        folder, slash, name = self._inside(one["source"]).rpartition("/")
        where = f'<span class="folder">{shorten_middle(folder + slash)}</span>' if slash else ""
        return f'<span class="id" title="{escape(one["source"])}">{where}{shorten_middle(name)}</span>'

    def place(self, one: Values) -> str:
        """Source and row of a document, unless its id says as much."""
        source, row = one["source"], one["row"]
        if str(one["id"]) in (f"{source}:{row}", source):
            return ""
        words = f"{shorten_middle(self._inside(source))}:{row}" if source else f"row {row}"
        return f'<span class="place quiet" title="{escape(source)}">{words}</span>'

    def _column(self, one: Values) -> str:
        """What stands above a text; of a long name the end, where names of one corpus differ."""
        name = self._inside(one["source"]) if one["id"] == one["source"] else str(one["id"])
        return name if len(name) <= COLUMN_NAME else f"…{name[1 - COLUMN_NAME :]}"

    def _inside(self, path: str) -> str:
        """A path without what all have in common."""
        return path.removeprefix(f"{self.root.rstrip('/')}/") if self.root else path

    @cached_property
    def _shingler(self) -> Shingler:
        names = ("bag", "hash_bits", "seed", *NORMALISATION)
        options = {name: self.settings[name] for name in names if name in self.settings}
        return Shingler(self.settings["shingle"], **options)

    @cached_property
    def _known(self) -> dict[str, ShingleSpans]:
        """The kept text of a cluster is cut into shingles once, not for every member."""
        return {}

    def _spans(self, text: str) -> ShingleSpans:
        if text not in self._known:
            self._known[text] = self._shingler.spans(text)
        return self._known[text]


def _first_ones(left: str, right: str, passages: list[Passage]) -> str:
    """How much of long texts is compared, and if nothing differs there, that it is so."""
    words = f"The first {COMPARED_CHARACTERS:,} characters."
    return words if texts_differ(left, right, passages) else f"{words} Nothing in them differs."


def tick_box(one: Values) -> str:
    """A box to tick for a document that should have been kept.

    The id is a JSON string of plain ASCII in an attribute: no character of it can be dropped or changed by a parser on
    the way to the script, and none can end the attribute.
    """
    packed = escape(json.dumps(str(one["id"])))
    name = f"keep this one: {escape(one['id'])}"
    box = f'<input type="checkbox" autocomplete="off" data-id="{packed}" aria-label="{name}">'
    return f'<label class="tick">{box} keep this one</label>'


def largest_clusters(report: Values, texts: Texts) -> str:
    """The largest clusters, each to be opened, and a box to tick for every member that should have been kept."""
    clusters = report.get("largest_clusters") or []
    if not clusters:
        body = '<p class="quiet">Nothing was removed.</p>'
    else:
        shown, total = len(clusters), report["clusters"]["of_two_or_more"]
        which = f"The {shown} largest of {plural(total, 'cluster')}" if total > shown else plural(total, "cluster")
        intro = f"<p>{which}. Members that are least similar to the kept one come first.{_how_to_tick(report)}</p>"
        parts = [_cluster(one, report, texts) for one in clusters]
        body = f"{intro}{_note(texts)}{LEGEND if texts.read else ''}{''.join(parts)}"
    return section("clusters", "What was removed", body)


def just_below(report: Values, texts: Texts) -> str:
    """Pairs just below the threshold, with those of two kept documents shown; nothing if nobody looked."""
    found = report.get("just_below")
    if found is None:
        return ""
    between = f"a similarity from {found['from']:g} up to the threshold {report['settings']['threshold']:g}"
    pairs = found["closest"][:SHOWN_PAIRS]
    if not found["pairs"]:
        body = f'<p class="quiet">No candidate pair has {between}.</p>'
    else:
        both = "The closest in which both documents are kept:" if pairs else "In none of them both documents are kept."
        intro = f"<p>{plural(found['pairs'], 'candidate pair')} {_have(found['pairs'])} {between}. {both}</p>"
        body = f"{intro}{''.join(_pair(one, report, texts) for one in pairs)}"
    return section("just-below", "What nearly was removed", body)


def _cluster(cluster: Values, report: Values, texts: Texts) -> str:
    kept, members = cluster["kept"], cluster["members"]
    read = report["counts"]["read"]
    large = (
        f'<span class="tag">{format_percent(cluster["size"], read)} of all</span>'
        if _is_large(cluster["size"], read)
        else ""
    )
    left_out = cluster["size"] - 1 - len(members)
    more = f'<p class="quiet">{plural(left_out, "more", "more")} in removed.parquet.</p>' if left_out > 0 else ""
    return (
        f'<details class="cluster"><summary><span class="count">{plural(cluster["size"], "document")}</span> '
        f'{texts.name(kept)} {large} <span class="quiet least">{_least(cluster, report)}</span></summary>'
        f'<p class="kept-one"><span class="quiet">kept</span> {texts.name(kept)} {texts.place(kept)}</p>'
        f'<ol class="members">{_members(kept, members, report, texts)}</ol>{more}</details>'
    )


def _least(cluster: Values, report: Values) -> str:
    """How similar the least similar member is; how many nobody compared, if so: of these it is not known."""
    similarities = [one["similarity"] for one in cluster["members"]]
    unknown = similarities.count(None)
    if unknown:
        # Members that were not compared come first: if all that are named are such, there may be more.
        more = unknown == len(similarities) < cluster["size"] - 1
        return f"{'at least ' if more else ''}{unknown:,} not compared"
    return f"least similar {_about(min(similarities), report)}"


def _members(kept: Values, members: Iterable[Values], report: Values, texts: Texts) -> str:
    return "".join(
        f'<li class="member"><div class="line">{_similarity(one["similarity"], report)} {texts.name(one)} '
        f"{texts.place(one)} {tick_box(one)}</div>"
        f"{texts.differences(kept, one) if place < SHOWN_MEMBERS else ''}</li>"
        for place, one in enumerate(members)
    )


def _pair(pair: Values, report: Values, texts: Texts) -> str:
    left, right = pair["left"], pair["right"]
    places = " ".join(f"<li>{texts.name(one)} {texts.place(one)}</li>" for one in (left, right))
    return (
        f'<details class="cluster pair"><summary>{_similarity(pair["similarity"], report)} {texts.name(left)} '
        f'<span class="quiet">and</span> {texts.name(right)}</summary><ul class="both">{places}</ul>'
        f"{texts.differences(left, right)}</details>"
    )


def _similarity(value: float | None, report: Values) -> str:
    """A similarity, with what there is to know about it."""
    if value is None:
        return '<span class="similarity quiet">not compared</span>'
    chained = value < report["settings"]["threshold"] and report["settings"]["group"] == "components"
    tag = ' <span class="tag">joined through others</span>' if chained else ""
    return f'<span class="similarity">{_about(value, report)}</span>{tag}'


def _about(value: float, report: Values) -> str:
    """The number; an estimate says so."""
    return f"≈ {format_similarity(value)}" if report["settings"]["verify"] == "signature" else format_similarity(value)


def _how_to_tick(report: Values) -> str:
    twins = report.get("duplicate_ids") or 0
    shared = (
        f" {plural(twins, 'document')} {_have(twins)} the id of an earlier one; an id names them all." if twins else ""
    )
    return f'<span class="live-only"> Tick what should have been kept.</span>{shared}'


def _note(texts: Texts) -> str:
    if not texts.exist:
        return '<p class="quiet">The documents are sets: there is no text to show.</p>'
    return f'<p class="quiet">{render_code_spans(texts.note)}</p>' if texts.note else ""


def _is_large(size: int, documents: int) -> bool:
    """Whether a cluster is worth an alarm."""
    return documents >= MANY_DOCUMENTS and size > documents / 100


def _have(count: int) -> str:
    return "has" if count == 1 else "have"
