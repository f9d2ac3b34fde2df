"""Sections with document texts: removed documents by cluster, and pairs just below the threshold."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from minwise._internal.formatting import format_percent, format_similarity, plural, render_code_spans, shorten_middle
from minwise._internal.html import escape, section
from minwise.comparison.alignment import decode_passages, texts_differ
from minwise.comparison.page import LEGEND, side_by_side
from minwise.comparison.passages import Passage, align_passages
from minwise.text.shingling import Shingler, ShingleSpans

__all__ = [
    "MANY_DOCUMENTS",
    "SHOWN_CLUSTERS",
    "SHOWN_MEMBERS",
    "SHOWN_PAIRS",
    "DocumentTexts",
    "keep_box",
    "near_miss_section",
    "removed_section",
]

# Minimum number of documents for the warning about a cluster with more than 1 % of them.
MANY_DOCUMENTS = 1000
# Clusters on the page, members of a cluster whose texts are shown besides the kept one, and pairs on the page.
SHOWN_CLUSTERS = 10
SHOWN_MEMBERS = 3
SHOWN_PAIRS = 10

Values = Mapping[str, Any]

# Characters at the start of each text that are compared: forty such pairs take 0.05 s.
COMPARED_CHARACTERS = 10_000
# Characters that are shown of them, around the differences.
SHOWN_CHARACTERS = 4000
# Maximum length of a name above a column.
COLUMN_NAME = 80


@dataclass(frozen=True)
class DocumentTexts:
    """Texts of documents, and the settings with which they were compared.

    Attributes:
        read: Texts by source and row.
        settings: The settings of the run.
        note: Why some texts are missing, in one sentence.
        root: The common parent directory of all sources, which is left out of names.
        reasons: Why a missing text is missing, by source and row.
    """

    read: Mapping[tuple[str, int], str]
    settings: Values
    note: str = ""
    root: str = ""
    reasons: Mapping[tuple[str, int], str] = field(default_factory=dict)

    @property
    def exist(self) -> bool:
        """Whether the documents are texts; sets are not."""
        return bool(self.settings["shingle"] != "set")

    def differences(self, left: Values, right: Values) -> str:
        """Return both texts side by side with their differences marked, or why one of them is missing."""
        if not self.exist:
            return ""
        texts = [self.read.get((document["source"], document["row"])) for document in (left, right)]
        if texts[0] is None or texts[1] is None:
            return f'<p class="quiet missing">{"<br>".join(self._missing(left, right))}</p>'
        names = (self._column_name(left), self._column_name(right))
        aligned = self._aligned(texts[0][:COMPARED_CHARACTERS], texts[1][:COMPARED_CHARACTERS])
        both = side_by_side(*aligned, names=names, max_chars=SHOWN_CHARACTERS)
        note = _difference_note(texts[0], texts[1], differ=texts_differ(*aligned))
        return f'{note}<div class="differences" tabindex="0" role="region" aria-label="Differences">{both}</div>'

    def _missing(self, *documents: Values) -> Iterator[str]:
        """Yield why the texts of documents are not shown."""
        for document in documents:
            name = document["source"], document["row"]
            if name not in self.read:
                reason = render_code_spans(self.reasons.get(name, "it was not read"))
                yield f"The text of {escape(self._column_name(document))} is not shown: {reason}."

    def _aligned(self, left: str, right: str) -> tuple[str, str, list[Passage]]:
        """Return both texts, decoded for display, and their shared passages."""
        passages = align_passages(self._spans(left), self._spans(right))
        return decode_passages(left, right, passages, in_bytes=self._shingler.kind == "byte")

    def name(self, document: Values) -> str:
        """Return the id of a document; if it is a path, the directory is less prominent."""
        if document["id"] != document["source"]:
            return f'<span class="id">{shorten_middle(document["id"])}</span>'
        folder, slash, name = self._relative(document["source"]).rpartition("/")
        parent = f'<span class="folder">{shorten_middle(folder + slash)}</span>' if slash else ""
        return f'<span class="id" title="{escape(document["source"])}">{parent}{shorten_middle(name)}</span>'

    def location(self, document: Values) -> str:
        """Return source and row of a document, unless its id contains them."""
        source, row = document["source"], document["row"]
        if str(document["id"]) in (f"{source}:{row}", source):
            return ""
        shown = f"{shorten_middle(self._relative(source))}:{row}" if source else f"row {row}"
        return f'<span class="location quiet" title="{escape(source)}">{shown}</span>'

    def _column_name(self, document: Values) -> str:
        """Return the name above a text; the end of a long one, where names of a corpus differ."""
        is_path = document["id"] == document["source"]
        name = self._relative(document["source"]) if is_path else str(document["id"])
        return name if len(name) <= COLUMN_NAME else f"…{name[1 - COLUMN_NAME :]}"

    def _relative(self, path: str) -> str:
        """Return a path relative to the common parent directory."""
        return path.removeprefix(f"{self.root.rstrip('/')}/") if self.root else path

    @cached_property
    def _shingler(self) -> Shingler:
        return Shingler.from_settings(self.settings)

    @cached_property
    def _spans_cache(self) -> dict[str, ShingleSpans]:
        """Shingles by text, so that the kept text of a cluster is shingled once, not for every member."""
        return {}

    def _spans(self, text: str) -> ShingleSpans:
        if text not in self._spans_cache:
            self._spans_cache[text] = self._shingler.spans(text)
        return self._spans_cache[text]


def _difference_note(left: str, right: str, *, differ: bool) -> str:
    """Return notes that only the start of long texts is compared, and that no word of what is compared differs."""
    long = max(len(left), len(right)) > COMPARED_CHARACTERS
    cut = f"Only the first {COMPARED_CHARACTERS:,} characters are compared here, to keep this page small."
    same = "They do not differ" if long else "The texts are identical" if left == right else "The texts do not differ"
    apart = "" if left == right else ", except perhaps in case, punctuation and blanks"
    notes = [cut if long else "", "" if differ else f"{same}{apart}."]
    return f'<p class="quiet missing">{" ".join(filter(None, notes))}</p>' if any(notes) else ""


def keep_box(document: Values) -> str:
    """Return a checkbox that selects a removed document to be kept.

    The id is an ASCII JSON string in an attribute, so that an HTML parser neither changes nor drops any character of
    it, and none of them ends the attribute.
    """
    encoded = escape(json.dumps(str(document["id"])))
    label = f"keep this document: {escape(document['id'])}"
    box = f'<input type="checkbox" autocomplete="off" data-id="{encoded}" aria-label="{label}">'
    return f'<label class="keep">{box} keep this document</label>'


def removed_section(report: Values, texts: DocumentTexts) -> str:
    """Return the section with the largest clusters, and a checkbox for every removed member."""
    clusters = report.get("largest_clusters") or []
    if not clusters:
        body = '<p class="quiet">No documents were removed.</p>'
    else:
        shown, total = len(clusters), report["clusters"]["of_two_or_more"]
        which = f"The {shown} largest of {plural(total, 'cluster')}" if total > shown else plural(total, "cluster")
        intro = f"<p>{which}. Members least similar to the kept document come first.{_how_to_select(report)}</p>"
        parts = [_cluster(cluster, report, texts) for cluster in clusters]
        body = f"{intro}{_about_texts(texts)}{''.join(parts)}"
    return section("clusters", "Removed documents", body)


def near_miss_section(report: Values, texts: DocumentTexts) -> str:
    """Return the section with pairs just below the threshold; empty if the report does not contain them."""
    found = report.get("just_below")
    if found is None:
        return ""
    between = f"a similarity between {found['from']:g} and the threshold {report['settings']['threshold']:g}"
    pairs = found["closest"][:SHOWN_PAIRS]
    if not found["pairs"]:
        body = f'<p class="quiet">No candidate pair has {between}.</p>'
    else:
        kept = "The most similar of two kept documents:" if pairs else "No pair has two kept documents."
        about_pairs = "About " if report["pairs"].get("sampled_one_in", 1) > 1 else ""
        intro = (
            f"<p>{about_pairs}{plural(found['pairs'], 'candidate pair')} {_have(found['pairs'])} {between}. {kept}</p>"
        )
        about = _about_texts(texts) if pairs and not report.get("largest_clusters") else ""
        body = f"{intro}{about}{''.join(_pair(pair, report, texts) for pair in pairs)}"
    return section("just-below", "Pairs just below the threshold", body)


def _cluster(cluster: Values, report: Values, texts: DocumentTexts) -> str:
    kept, members = cluster["kept"], cluster["members"]
    read = report["counts"]["read"]
    large = (
        f'<span class="tag">{format_percent(cluster["size"], read)} of all</span>'
        if _is_large(cluster["size"], read)
        else ""
    )
    left_out = cluster.get("removed", cluster["size"] - 1) - len(members)
    status = "removed, too" if report["settings"].get("drop_all") else "kept"
    more = f'<p class="quiet">{plural(left_out, "more", "more")} in removed.parquet.</p>' if left_out > 0 else ""
    if texts.read and len(members) > SHOWN_MEMBERS:
        more += f'<p class="quiet">Only the first {SHOWN_MEMBERS} texts are shown, to keep this page small.</p>'
    return (
        f'<details class="cluster"><summary><span class="count">{plural(cluster["size"], "document")}</span> '
        f'{texts.name(kept)} {large} <span class="quiet least">{_least(cluster, report)}</span></summary>'
        f'<p class="kept-one"><span class="quiet">{status}</span> {texts.name(kept)} {texts.location(kept)}</p>'
        f'<ol class="members">{_members(kept, members, report, texts)}</ol>{more}</details>'
    )


def _least(cluster: Values, report: Values) -> str:
    """Return the lowest similarity in a cluster, or how many members were not compared."""
    similarities = [member["similarity"] for member in cluster["members"]]
    unknown = similarities.count(None)
    if unknown:
        # Members that were not compared come first: if all listed members are such, there may be more.
        more = unknown == len(similarities) < cluster.get("removed", cluster["size"] - 1)
        return f"{'at least ' if more else ''}{unknown:,} not compared"
    return f"least similar {_number(min(similarities), report)}"


def _members(kept: Values, members: Iterable[Values], report: Values, texts: DocumentTexts) -> str:
    box = _no_box if report["settings"].get("mark") else keep_box
    return "".join(
        f'<li class="member"><div class="line">{_similarity(member["similarity"], report)} {texts.name(member)} '
        f"{texts.location(member)} {box(member)}</div>"
        f"{texts.differences(kept, member) if number < SHOWN_MEMBERS else ''}</li>"
        for number, member in enumerate(members)
    )


def _no_box(document: Values) -> str:
    """Return no checkbox: of a marked run nothing can be restored."""
    return ""


def _pair(pair: Values, report: Values, texts: DocumentTexts) -> str:
    left, right = pair["left"], pair["right"]
    both = " ".join(f"<li>{texts.name(document)} {texts.location(document)}</li>" for document in (left, right))
    return (
        f'<details class="cluster pair"><summary>{_similarity(pair["similarity"], report)} {texts.name(left)} '
        f'<span class="quiet">and</span> {texts.name(right)}</summary><ul class="both">{both}</ul>'
        f"{texts.differences(left, right)}</details>"
    )


def _similarity(value: float | None, report: Values) -> str:
    """Return a similarity, with a tag if the document was removed through others."""
    if value is None:
        return '<span class="similarity quiet">not compared</span>'
    chained = value < report["settings"]["threshold"] and report["settings"]["group"] == "components"
    tag = ' <span class="tag">joined through others</span>' if chained else ""
    return f'<span class="similarity">{_number(value, report)}</span>{tag}'


def _number(value: float, report: Values) -> str:
    """Return a similarity as a number; an estimate has a sign."""
    return f"≈ {format_similarity(value)}" if report["settings"]["verify"] == "signature" else format_similarity(value)


def _how_to_select(report: Values) -> str:
    if report["settings"].get("mark"):
        return ""
    repeated = report.get("duplicate_ids") or 0
    note = f" {plural(repeated, 'document')} {_have(repeated)} the id of an earlier one; an id selects all of them."
    return f'<span class="live-only"> Select documents that should have been kept.</span>{note if repeated else ""}'


def _about_texts(texts: DocumentTexts) -> str:
    """Return why texts are missing, and the legend of those that are shown."""
    if not texts.exist:
        return '<p class="quiet">The documents are sets, which have no text.</p>'
    note = f'<p class="quiet">{render_code_spans(texts.note)}</p>' if texts.note else ""
    return f"{note}{LEGEND if texts.read else ''}"


def _is_large(size: int, documents: int) -> bool:
    """Return whether a cluster has so many documents that the page warns about it."""
    return documents >= MANY_DOCUMENTS and size > documents / 100


def _have(count: int) -> str:
    return "has" if count == 1 else "have"
