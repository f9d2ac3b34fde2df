"""Writer of the frozen indexes in index/: `python tests/golden/freeze_index.py`.

Run it only together with a new FORMAT_VERSION. The indexes of older versions stay, and stay readable.
"""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from support.index_oracle import storing

import minwise as mw
from minwise.index import StoredDocument, StoreName
from minwise.index.settings import FORMAT_VERSION, READABLE_VERSIONS

VERSIONS = READABLE_VERSIONS
FROZEN = Path(__file__).with_name("index") / f"version-{FORMAT_VERSION}"
STORES: tuple[StoreName, ...] = ("shingles", "text", "sketch")
SETTINGS: dict[str, Any] = {
    "shingle": "word:2", "threshold": 0.4, "bands": 8, "rows": 2, "max_bucket": 64, "seed": 20_261_116,
}  # fmt: skip
TEXTS = [
    "the tide table on the harbour wall is older than the wall",
    "The tide table on the harbour wall is older than the harbour!",
    "der Leuchtturmwärter zählt die Schiffe, und fängt von vorne an",
    "灯台の光は、夜の海を静かに照らしている。",
    "灯台の光は、夜の海を照らしている。",
    "short",
    "",
    "a bell is rung on the harbour wall at eleven, and nobody knows why",
    "a bell is rung on the harbour wall at twelve, and nobody knows why",
    "the tide table on the harbour wall is gone",
]
QUERIES = ["the tide table on the harbour wall is older", TEXTS[4], "a bell is rung on the harbour wall", "nobody"]
# The ids in the final state.
IDS = ("2", "ß", -4, "5", "7", "8", "9")


def make(path: Path, store: StoreName) -> None:
    """Create two segments, one with a removed document, recent documents, and ids and metadata of every kind."""
    with mw.Index.create(path, **SETTINGS, **storing(store)) as index:
        index.add(["a", 2, "ß"], TEXTS[:3], [{"lang": "en", "n": 1}, None, {"lang": "de", "deep": {"x": [1, 2.5]}}])
        index.flush()
        index.add([-4, "5", "6", "7"], TEXTS[3:7], [None, {}, None, {"empty": True}])
        index.remove(["a", "6"])
        index.flush()
        index.add(["8", "9"], TEXTS[7:9])
        index.add(["2"], TEXTS[9:], on_duplicate_id="replace")
    (path / "writer.lock").unlink()


def contents(index: mw.Index) -> dict[str, Any]:
    """Return everything that an index reports about its documents."""
    return {
        "documents": [describe(index.get(document_id)) for document_id in IDS],
        "answers": {text: [[hit.id, hit.similarity] for hit in index.query(text)] for text in QUERIES},
    }


def describe(stored: StoredDocument) -> dict[str, Any]:
    """Return a document in plain values, with elements one per line."""
    elements = None if stored.elements is None else [f"{element:016x}" for element in stored.elements.tolist()]
    return {"id": stored.id, "metadata": stored.metadata, "text": stored.text, "elements": elements}


def freeze(store: StoreName) -> None:
    """Write the index of one store, and its content as JSON."""
    path = FROZEN / f"{store}.mw"
    FROZEN.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(path, ignore_errors=True)
    make(path, store)
    with tempfile.TemporaryDirectory() as folder:  # opening an index leaves files in its directory
        copy = shutil.copytree(path, Path(folder) / path.name)
        with mw.Index.open(copy) as index:
            text = json.dumps(contents(index), indent=1, ensure_ascii=False)
    path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    for kind in STORES:
        freeze(kind)
