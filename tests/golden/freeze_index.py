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
from minwise.index.settings import FORMAT_VERSION, SETS_VERSION

# Versions of an index of texts.
VERSIONS = (1, 2)
FROZEN = Path(__file__).with_name("index") / f"version-{FORMAT_VERSION}"
FROZEN_SETS = FROZEN.with_name(f"version-{SETS_VERSION}")
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

# Settings and documents of the indexes of sets and records; the third document is removed.
KINDS: dict[str, dict[str, Any]] = {
    "set": {"shingle": "set", "bag": True},
    "record": {"fields": "name:char:3 phone:digits born:whole", "weights": "phone=2"},
}
DOCUMENTS: dict[str, list[Any]] = {
    "set": [["bread", "milk", "milk", 3], ["milk", "bread", 3, -5], ["tea"], [], ["café", "3"]],
    "record": [
        {"name": "Ann Müller", "phone": "555-1234", "born": 1961},
        {"name": "Anne Muller", "phone": 5551234, "born": None},
        {"name": "Bob", "phone": None, "born": "1984"},
        {"name": None, "phone": "", "born": None},
        {"name": "bob", "phone": "(0) 99 88", "born": 1984},
    ],
}


def make_sets(path: Path, kind: str) -> None:
    """Create an index of sets or records with a segment, a removed document and recent documents."""
    settings = {name: SETTINGS[name] for name in ("threshold", "bands", "rows", "max_bucket", "seed")}
    with mw.Index.create(path, **settings, **KINDS[kind]) as index:
        index.add(range(3), DOCUMENTS[kind][:3])
        index.remove([2])
        index.flush()
        index.add([3, 4], DOCUMENTS[kind][3:], [{"late": True}, None])
    (path / "writer.lock").unlink()


def set_contents(index: mw.Index, kind: str) -> dict[str, Any]:
    """Return the documents of an index of sets or records, and the answers to all of them."""
    answers = index.query_many(DOCUMENTS[kind])
    return {
        "documents": [describe(index.get(number)) for number in (0, 1, 3, 4)],
        "answers": [[[hit.id, hit.similarity] for hit in answer] for answer in answers],
    }


def freeze_sets(kind: str) -> None:
    """Write the index of sets or records, and its content as JSON."""
    path = FROZEN_SETS / f"{kind}.mw"
    FROZEN_SETS.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(path, ignore_errors=True)
    make_sets(path, kind)
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(path, Path(folder) / path.name)
        with mw.Index.open(copy) as index:
            text = json.dumps(set_contents(index, kind), indent=1, ensure_ascii=False)
    path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")


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
    for name in KINDS:
        freeze_sets(name)
