"""Facts: an index in, how much there is of what out."""

from typing import Any

from minwise.index.settings import IndexSettings
from minwise.index.store import Store
from minwise.index.view import View

__all__ = ["describe"]


def describe(settings: IndexSettings, view: View, store: Store) -> dict[str, Any]:
    """Documents, files, bytes, memory and settings; without a seed that is secret."""
    state, opened = view.state, view.postings.segments()
    segments = [
        {"file": one.name, "bytes": size, "documents": one.high - one.low, "postings": one.postings}
        for one, (*_, size) in zip(state.segments, opened, strict=True)
    ]
    return {
        "documents": state.documents,
        "removed": state.next - state.documents,
        "recent": state.next - state.flushed,
        "commits": state.commit,
        "bytes": store.database_bytes + sum(size for *_, size in opened),
        "database_bytes": store.database_bytes,
        "segments": segments,
        "resident_bytes": view.postings.resident_bytes,
        "settings": settings.shown(),
    }
