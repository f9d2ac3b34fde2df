"""Check: an index in, everything that is not as it was written out."""

from collections.abc import Iterator

from minwise.errors import FormatError
from minwise.index.answers import Damage
from minwise.index.records import checksum_of, find_damaged
from minwise.index.settings import IndexSettings
from minwise.index.store import TABLES, Store
from minwise.index.view import View

__all__ = ["find_damage"]


def find_damage(settings: IndexSettings, view: View, store: Store) -> list[Damage]:
    """Reads every byte that is part of the index, and compares it with its checksum; then counts and digest."""
    damages = [*_damaged_segments(view), *_damaged_rows(settings, view, store)]
    known = {damage.what for damage in damages}
    damages += [Damage(str(store.path), what) for what in store.complaints() if what not in known]
    return damages


def _damaged_segments(view: View) -> Iterator[Damage]:
    """Reads the files that are open: another process may have merged them away by name."""
    for place, path in enumerate(view.segment_paths()):
        what = view.postings.check_segment(place)
        if what is not None:
            yield Damage(str(path), what)


def _damaged_rows(settings: IndexSettings, view: View, store: Store) -> Iterator[Damage]:
    digest, path = 0, str(store.path)
    for table in TABLES:
        rows = 0
        try:
            for number, record in store.rows(table):
                rows += 1
                if find_damaged([(number, record)]) is not None:
                    yield Damage(path, f"{table}: row {number} is damaged")
                elif table in ("documents", "texts"):
                    digest += (number << 32) + checksum_of(record)
        except FormatError as error:
            yield Damage(path, str(error).removeprefix(f"{path}: "))
        expected = view.state.documents if table == "documents" or settings.store == "text" else 0
        if table in ("documents", "texts") and rows != expected:
            yield Damage(path, f"{table}: {expected} rows must be there, got {rows}")
    if digest % 2**64 != view.state.digest:
        yield Damage(path, "documents: the digest of all rows is not that of the manifest")
