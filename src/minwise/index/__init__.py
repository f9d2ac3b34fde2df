"""Persistent index of documents, with near-duplicate queries."""

from minwise.index.index import Index
from minwise.index.result_types import (
    AddCounts,
    Added,
    Answer,
    ContainedSide,
    Damage,
    Decision,
    DedupCounts,
    Expired,
    Hit,
    HitRow,
    IndexStats,
    Listing,
    OnDuplicateId,
    PassageRow,
    QueryRow,
    SegmentStats,
    StoredDocument,
    TextMatch,
    TextMatches,
    TruncatedBy,
)
from minwise.index.settings import OpenMode
from minwise.options import StoreName

__all__ = [
    "AddCounts",
    "Added",
    "Answer",
    "ContainedSide",
    "Damage",
    "Decision",
    "DedupCounts",
    "Expired",
    "Hit",
    "HitRow",
    "Index",
    "IndexStats",
    "Listing",
    "OnDuplicateId",
    "OpenMode",
    "PassageRow",
    "QueryRow",
    "SegmentStats",
    "StoreName",
    "StoredDocument",
    "TextMatch",
    "TextMatches",
    "TruncatedBy",
]
