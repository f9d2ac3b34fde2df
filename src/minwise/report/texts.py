"""Texts: documents of a report and their texts in, names and coloured differences out."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from minwise.passages import Passage, align_passages
from minwise.report.aligned_rows import differ
from minwise.report.html import escape
from minwise.report.readable import readable_passages
from minwise.report.side_by_side import side_by_side
from minwise.report.wording import clipped
from minwise.stages.shingle import NORMALISATION, Shingler, ShingleSpans

__all__ = ["Texts", "tick_box"]

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
        both = side_by_side(*aligned, names=names, most=SHOWN_CHARACTERS)
        long = max(len(texts[0]), len(texts[1])) > COMPARED_CHARACTERS
        only = f'<p class="quiet missing">{_first_ones(*aligned)}</p>' if long else ""
        return f'{only}<div class="differences" tabindex="0" role="region" aria-label="Differences">{both}</div>'

    def _aligned(self, left: str, right: str) -> tuple[str, str, list[Passage]]:
        """Both texts as they can be shown, and what they share."""
        passages = align_passages(self._spans(left), self._spans(right))
        return readable_passages(left, right, passages, in_bytes=self._shingler.kind == "byte")

    def name(self, one: Values) -> str:
        """The id of a document; of one that is a path, the directory is quieter."""
        if one["id"] != one["source"]:
            return f'<span class="id">{clipped(one["id"])}</span>'
        folder, slash, name = self._inside(one["source"]).rpartition("/")
        where = f'<span class="folder">{clipped(folder + slash)}</span>' if slash else ""
        return f'<span class="id" title="{escape(one["source"])}">{where}{clipped(name)}</span>'

    def place(self, one: Values) -> str:
        """Source and row of a document, unless its id says as much."""
        source, row = one["source"], one["row"]
        if str(one["id"]) in (f"{source}:{row}", source):
            return ""
        words = f"{clipped(self._inside(source))}:{row}" if source else f"row {row}"
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
    return words if differ(left, right, passages) else f"{words} Nothing in them differs."


def tick_box(one: Values) -> str:
    """A box to tick for a document that should have been kept.

    The id is a JSON string of plain ASCII in an attribute: no character of it can be dropped or changed by a parser on
    the way to the script, and none can end the attribute.
    """
    packed = escape(json.dumps(str(one["id"])))
    name = f"keep this one: {escape(one['id'])}"
    box = f'<input type="checkbox" autocomplete="off" data-id="{packed}" aria-label="{name}">'
    return f'<label class="tick">{box} keep this one</label>'
