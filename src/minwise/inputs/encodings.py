"""Character encodings of text files: detection from the first bytes, conversion to UTF-8 and back.

Detection depends on nothing but these bytes. A byte order mark decides on UTF-16 and UTF-32. Everything that is UTF-8
but for a few damaged bytes is UTF-8, so that only the damaged rows have faults. Other bytes are cp1252, the superset of
Latin-1 that spreadsheets write, if nearly all of them are letters within words or usual punctuation. Whatever is left
is undecidable: the setting ``encoding`` decides.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from minwise.inputs.content import unusable_content
from minwise.inputs.source import UnreadableError

__all__ = ["Encoding", "choose_encoding", "detect_encoding"]

# The longest first: the mark of UTF-32 begins with that of UTF-16.
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: ("utf-32", "utf-32-le"),
    codecs.BOM_UTF32_BE: ("utf-32", "utf-32-be"),
    codecs.BOM_UTF16_LE: ("utf-16", "utf-16-le"),
    codecs.BOM_UTF16_BE: ("utf-16", "utf-16-be"),
}
# Bytes that must be text after a byte order mark.
MARKED_BYTES = 512
UTF8_NAMES = ("utf-8", "utf-8-sig", "ascii")

# cp1252. A letter is plausible in a run of at most three that touches an ASCII letter (the Icelandic þýð is the longest
# common run), or alone if it is a word of French, Italian, Spanish, Portuguese or Scandinavian. ÿ (0xFF) hardly exists
# in texts, but is common in damaged files.
LETTERS = rb"\x8a\x8c\x8e\x9a\x9c\x9e\xc0-\xd6\xd8-\xf6\xf8-\xfe"
LONE_LETTERS = rb"\xc0\xc5\xc8\xc9\xd3\xd6\xd8\xe0\xe1\xe4\xe5\xe6\xe8\xe9\xf2\xf3\xf4\xf6\xf8\xfa"
MARKS = rb"\x80\x82\x84\x85\x8b\x91-\x95\x99\x9b\xa0-\xa3\xa5\xa7\xa9\xab\xae-\xb1\xb4\xb5\xbb-\xbf\xd7"
PLAUSIBLE = re.compile(
    rb"(?<=[A-Za-z])[%(letters)b]{1,3}(?![%(letters)b])"
    rb"|(?<![%(letters)b])[%(letters)b]{1,3}(?=[A-Za-z])"
    rb"|(?<![A-Za-z%(letters)b])[%(lone)b](?![A-Za-z%(letters)b])"
    rb"|[\x92\x96\x97\xad\xb7]"  # within words: apostrophe, dashes, soft hyphen, middle dot
    rb"|[\xaa\xb2\xb3\xb9\xba](?![A-Za-z%(letters)b])"  # raised letters and digits
    rb"|(?<![A-Za-z%(letters)b])[%(marks)b]|[%(marks)b](?![A-Za-z%(letters)b])"
    % {b"letters": LETTERS, b"lone": LONE_LETTERS, b"marks": MARKS}
)
DAMAGE = re.compile("[\udc80-\udcff]")
BEYOND_ASCII = re.compile("[^\0-\x7f\udc80-\udcff]")
HIGH = re.compile(rb"[\x80-\xff]")
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
PLAUSIBLE_SHARE = 0.85
# Fewer damaged bytes than both limits belong to single damaged rows of a UTF-8 file.
DAMAGED_BYTES, DAMAGED_SHARE = 8, 0.01
REMEDY = "name its encoding, such as encoding='cp1250'"


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding other than UTF-8.

    Attributes:
        name: The name that users know, such as ``utf-16``.
        codec: The codec, which decides on the byte order.
        mark: The byte order mark at the start of the file; empty if it has none.
    """

    name: str
    codec: str
    mark: bytes = b""

    @property
    def _errors(self) -> str:
        return "minwise-cp1252" if self.codec == "cp1252" else "strict"

    def decode(self, chunks: Iterable[bytes], *, complete: bool = True) -> Iterator[bytes]:
        """Yield the same text as UTF-8 without a byte order mark.

        Args:
            chunks: The bytes.
            complete: Whether the text ends with the chunks; otherwise they may end within a character.

        Raises:
            UnreadableError: At bytes that the encoding does not have, after the text before them.
        """
        decoder = codecs.getincrementaldecoder(self.codec)(self._errors)
        mark = "\ufeff" if self.mark else ""
        done = 0
        for chunk, final in [(chunk, False) for chunk in chunks] if not complete else _until_end(chunks):
            done += len(chunk)
            try:
                text = decoder.decode(chunk, final)
            except UnicodeDecodeError as error:
                yield from filter(None, [str(error.object[: error.start], self.codec).removeprefix(mark).encode()])
                start = done - len(error.object) + error.start
                raise UnreadableError(f"is not valid {self.name} at byte {start}; {REMEDY}") from None
            if text:
                yield from filter(None, [text.removeprefix(mark).encode()])
                mark = ""

    def encoder(self) -> Callable[[bytes], bytes]:
        """Return a function that converts pieces of UTF-8 text to this encoding, the first one with the mark."""
        encoder = codecs.getincrementalencoder(self.codec)(self._errors)
        mark = self.mark

        def encode(text: bytes) -> bytes:
            nonlocal mark
            data, mark = mark + encoder.encode(text.decode()), b""
            return data

        return encode


def _until_end(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    for chunk in chunks:
        yield chunk, False
    yield b"", True


def _keep_undefined(error: UnicodeError) -> tuple[str | bytes, int]:
    """Convert the five bytes that cp1252 does not define to control characters and back, as browsers do."""
    if isinstance(error, UnicodeDecodeError):
        return chr(error.object[error.start]), error.start + 1
    if isinstance(error, UnicodeEncodeError) and ord(error.object[error.start]) in (0x81, 0x8D, 0x8F, 0x90, 0x9D):
        return bytes([ord(error.object[error.start])]), error.start + 1
    raise error


codecs.register_error("minwise-cp1252", _keep_undefined)


def choose_encoding(given: str | None, head: bytes, complete: bool, *, guess: bool = True) -> Encoding | None:
    """Return the encoding of a file, or None for UTF-8.

    Args:
        given: The encoding that the user has named, instead of the detected one.
        head: The first bytes of the file.
        complete: Whether these are all.
        guess: Whether the file may be cp1252; otherwise only byte order marks count.

    Raises:
        UnreadableError: If the encoding cannot be decided.
    """
    if given is not None:
        return _named_encoding(given, head)
    return detect_encoding(head, complete=complete) if guess else _marked_encoding(head, complete=complete)


def _named_encoding(given: str, head: bytes) -> Encoding | None:
    name = codecs.lookup(given).name
    if name in UTF8_NAMES:
        return None
    for mark, names in BYTE_ORDER_MARKS.items():
        if name in names and head.startswith(mark):
            return Encoding(names[0], names[1], mark)
    codec = f"{name}-le" if name in ("utf-16", "utf-32") else name
    return Encoding(given.lower(), codec)


def _marked_encoding(head: bytes, *, complete: bool) -> Encoding | None:
    """Return the encoding of a byte order mark that a text of that encoding follows."""
    start, whole = head[:MARKED_BYTES], complete and len(head) <= MARKED_BYTES
    for mark, (name, codec) in BYTE_ORDER_MARKS.items():
        if head.startswith(mark) and _decodes(start[len(mark) :], codec, complete=whole):
            return Encoding(name, codec, mark)
    return None


def _decodes(data: bytes, codec: str, *, complete: bool) -> bool:
    """Return whether bytes are a text in an encoding: at least a character, and none is NUL."""
    try:
        text = codecs.getincrementaldecoder(codec)().decode(data, complete)
    except UnicodeDecodeError:
        return False
    return bool(text) and "\0" not in text


def detect_encoding(head: bytes, *, complete: bool) -> Encoding | None:
    """Return the encoding of a file by its first bytes, or None for UTF-8.

    >>> detect_encoding("Ein Café in Köln".encode("cp1252"), complete=True).name
    'cp1252'

    Raises:
        UnreadableError: If the encoding cannot be decided.
    """
    if head.isascii():
        return None
    marked = _marked_encoding(head, complete=complete)
    if marked is not None:
        return marked
    if unusable_content(head) is not None:  # the reader reports it
        return None
    text = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(head, complete)
    first = DAMAGE.search(text)
    if first is None:
        return None
    damaged = len(DAMAGE.findall(text))
    if len(BEYOND_ASCII.findall(text)) >= damaged:
        return None
    if _is_plausible(head):
        return Encoding("cp1252", "cp1252")
    if damaged >= DAMAGED_BYTES and damaged >= DAMAGED_SHARE * len(head):
        offset = len(text[: first.start()].encode())
        raise UnreadableError(f"is neither UTF-8 nor cp1252 from byte {offset} on; {REMEDY}")
    return None


def _is_plausible(head: bytes) -> bool:
    """Return whether bytes that are not UTF-8 are a text in cp1252."""
    if CONTROL.search(head):
        return False
    plausible = sum(len(HIGH.findall(found)) for found in PLAUSIBLE.findall(head))
    return plausible >= PLAUSIBLE_SHARE * len(HIGH.findall(head))
