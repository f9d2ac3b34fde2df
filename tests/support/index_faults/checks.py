"""What an index says, held against a model of what it must hold."""

from collections.abc import Iterable
from contextlib import suppress

import minwise as mw
from support.index_faults.workload import Document, Model, jaccard

__all__ = ["deviations"]


def deviations(index: mw.Index, model: Model, names: Iterable[str]) -> list[str]:
    """Everything that is not as the model says: how many documents there are, and all about those of these names.

    A document that must be there is contained, is stored as it was added and is found by its text; one that must not
    be there is none of that.
    """
    found = [] if len(index) == len(model.documents) else [f"{len(index)} documents, not {len(model.documents)}"]
    texts = {name: text for name in names if (text := model.text_of(name)) is not None}
    answers = index.query(list(texts.values()))
    for (name, text), answer in zip(texts.items(), answers, strict=True):
        document = model.documents.get(name)
        wrong = of_missing(index, name) if document is None else of_present(index, document, answer)
        found += [f"{name}: {what}" for what in (*wrong, *of_hits(answer, model, text))]
    for name in set(names) - texts.keys():
        found += [f"{name}: {what}" for what in of_missing(index, name)]
    return found


def of_present(index: mw.Index, document: Document, answer: mw.Answer) -> list[str]:
    """What is wrong with a document that must be there, wholly."""
    found = [] if document.id in index else ["not contained"]
    try:
        stored = index.get(document.id)
    except mw.InputError as error:
        found.append(f"not to be had: {error}")
    else:
        if (stored.id, stored.metadata, stored.text) != (document.id, document.metadata, document.text):
            found.append(f"stored as {stored}")
    if (document.id, 1.0) not in [(hit.id, hit.similarity) for hit in answer]:
        found.append(f"not among {answer}")
    return found


def of_missing(index: mw.Index, name: str) -> list[str]:
    """What is wrong with a document that must not be there at all."""
    found = ["contained"] if name in index else []
    with suppress(mw.InputError):
        found.append(f"to be had: {index.get(name)}")
    return found


def of_hits(answer: mw.Answer, model: Model, text: str) -> list[str]:
    """What is wrong with the answer to a text: hits that do not exist or that are something else."""
    found = ["cut short"] if answer.truncated else []
    for hit in answer:
        document = model.documents.get(str(hit.id))
        if document is None:
            found.append(f"found {hit.id}, which does not exist")
        elif hit != mw.Hit(document.id, jaccard(text, document.text), document.metadata, exact=True):
            found.append(f"found {hit} for {document}")
    return found
