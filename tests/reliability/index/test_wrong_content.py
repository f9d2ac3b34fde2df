"""Content that no writer stores, with right checksums: every operation answers, or raises one line about the file.

By default 180 changes; `make torture` makes it 6,000.
"""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.commands import TORTURE
from support.index_edits import edit_json
from support.index_faults.children import fast_folder
from support.index_mutations import Operations, mutate

import minwise as mw

FROZEN = Path(__file__).parents[2] / "golden" / "index" / "version-2"
DOCUMENTS = json.loads((FROZEN / "text.json").read_text(encoding="utf-8"))["documents"]
IDS, TEXTS = [document["id"] for document in DOCUMENTS], [document["text"] for document in DOCUMENTS]
CHANGES = 2000 if TORTURE else 60
SEED = 20_261_118


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("store", ["shingles", "text", "sketch"])
def test_wrong_content_is_one_line(store: str, record_property: Callable[[str, object], None]) -> None:
    """In every operation of a reader and a writer."""
    problems = {}
    with fast_folder() as folder:
        for number in range(CHANGES):
            copy = shutil.copytree(FROZEN / f"{store}.mw", folder / str(number) / "index.mw")
            change = mutate(copy, random.Random(f"{SEED} {store} {number}"))
            found = Operations(copy, TEXTS, IDS).run()
            shutil.rmtree(copy.parent)
            if found:
                problems[number] = (change, found)
    record_property("changes", CHANGES)
    assert problems == {}


def test_an_unchanged_index_passes_every_operation(tmp_path: Path) -> None:
    """Otherwise the test above tests nothing."""
    shutil.copytree(FROZEN / "text.mw", tmp_path / "whole.mw")
    edit_json(tmp_path / "whole.mw", 1, lambda state: None)
    with mw.Index.open(tmp_path / "whole.mw") as index:
        assert index.verify() == []
    assert Operations(tmp_path / "whole.mw", TEXTS, IDS).run() == []
