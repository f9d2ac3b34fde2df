"""Remembered texts: what was read of candidates anyway, as far as there is room, so that a page can show it."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise.stages.read import text_chunk

__all__ = ["RememberedTexts"]


class RememberedTexts:
    """Texts by the numbers of their documents, which come ascending."""

    def __init__(self, room: int) -> None:
        """None yet, and room for so many bytes of them."""
        self._room = room
        self._documents: list[NDArray[np.int64]] = []
        self._batches: list[tuple[NDArray[np.int64], NDArray[np.uint8]]] = []

    def add(self, documents: NDArray[np.int64], texts: pa.Array) -> None:
        """Copies the first texts of a batch that fit. Sets have none."""
        if pa.types.is_large_list(texts.type) or self._room <= 0:
            return
        chunk = text_chunk(texts)
        offsets = chunk.offsets.astype(np.int64) - int(chunk.offsets[0])
        fitting = int(np.searchsorted(offsets, self._room, side="right")) - 1
        first = int(chunk.offsets[0])
        self._documents.append(documents[:fitting])
        self._batches.append((offsets[: fitting + 1], chunk.data[first : first + int(offsets[fitting])].copy()))
        # What did not fit ends it: texts after a gap would be no less useful, but then big ones would never be there.
        self._room = self._room - int(offsets[fitting]) if fitting == len(texts) else 0

    def get(self, document: int) -> bytes | None:
        """The text of a document; None if it is not remembered."""
        for documents, (offsets, data) in zip(self._documents, self._batches, strict=True):
            place = int(np.searchsorted(documents, document))
            if place < len(documents) and documents[place] == document:
                return data[offsets[place] : offsets[place + 1]].tobytes()
        return None
