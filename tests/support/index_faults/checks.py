"""Comparison of an index with a model of its expected content."""

from collections.abc import Iterable
from contextlib import suppress

import minwise as mw
from minwise.errors import InputError
from minwise.index import Answer, Hit
from support.index_faults.workload import Document, Model, jaccard

__all__ = ["differences"]


def differences(index: mw.Index, model: Model, names: Iterable[str]) -> list[str]:
    """Return every difference between an index and a model: the number of documents, and the documents of these names.

    An expected document is contained, stored as it was added, and found by its text; a removed one is neither.
    """
    found = [] if len(index) == len(model.documents) else [f"{len(index)} documents, not {len(model.documents)}"]
    texts = {name: text for name in names if (text := model.text_of(name)) is not None}
    answers = index.query_many(list(texts.values()))
    for (name, text), answer in zip(texts.items(), answers, strict=True):
        document = model.documents.get(name)
        problems = (
            missing_differences(index, name) if document is None else present_differences(index, document, answer)
        )
        found += [f"{name}: {what}" for what in (*problems, *hit_differences(answer, model, text))]
    for name in set(names) - texts.keys():
        found += [f"{name}: {what}" for what in missing_differences(index, name)]
    return found


def present_differences(index: mw.Index, document: Document, answer: Answer) -> list[str]:
    """Return the differences of a document that the index must hold."""
    found = [] if document.id in index else ["not contained"]
    try:
        stored = index.get(document.id)
    except InputError as error:
        found.append(f"get failed: {error}")
    else:
        if (stored.id, stored.metadata, stored.text) != (document.id, document.metadata, document.text):
            found.append(f"stored as {stored}")
    if (document.id, 1.0) not in [(hit.id, hit.similarity) for hit in answer]:
        found.append(f"not among {answer}")
    return found


def missing_differences(index: mw.Index, name: str) -> list[str]:
    """Return the differences of a document that the index must not hold."""
    found = ["contained"] if name in index else []
    with suppress(InputError):
        found.append(f"returned: {index.get(name)}")
    return found


def hit_differences(answer: Answer, model: Model, text: str) -> list[str]:
    """Return the differences in the answer to a text: hits that do not exist or have other values."""
    found = ["truncated"] if answer.truncated else []
    for hit in answer:
        document = model.documents.get(str(hit.id))
        if document is None:
            found.append(f"found {hit.id}, which does not exist")
        elif hit != Hit(document.id, jaccard(text, document.text), document.metadata, exact=True):
            found.append(f"found {hit} for {document}")
    return found
