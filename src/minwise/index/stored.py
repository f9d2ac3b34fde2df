"""Stored: the number of a document in, what the index knows of it out."""

import numpy as np

from minwise.index.answers import Listing, StoredDocument
from minwise.index.records import DocumentRecord, as_text
from minwise.index.settings import IndexSettings
from minwise.index.store import Store

__all__ = ["list_newest", "stored_document"]

# Bytes of records and texts after which a list ends, however many were asked for.
LISTED_BYTES = 1 << 23


def stored_document(number: int, record: bytes, settings: IndexSettings, store: Store) -> StoredDocument:
    """A document whose record is at hand."""
    document = DocumentRecord.decode(record)
    text = as_text(store.content("texts", number)) if settings.store == "text" else None
    elements = np.frombuffer(document.body, dtype="<u8") if settings.exact else None
    return StoredDocument(document.id, document.described(), text, elements)


def list_newest(limit: int, before: int | None, settings: IndexSettings, store: Store) -> Listing:
    """Documents with numbers below ``before``, the highest first."""
    documents: list[StoredDocument] = []
    held, last = 0, None
    for number, record in store.rows_before("documents", before):
        if len(documents) == limit or held > LISTED_BYTES:
            return Listing(documents, last)
        documents.append(stored_document(number, record, settings, store))
        held += len(record) + len(documents[-1].text or "")
        last = number
    return Listing(documents, None)
