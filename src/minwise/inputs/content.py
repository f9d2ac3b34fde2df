"""Recognition of content by its first bytes, so that no file is read as what it is not.

Reasons are parts of a sentence whose subject is the file: ``is a PDF document; extract its text first``.
"""

import codecs
from collections.abc import Iterable, Iterator

import orjson

from minwise.inputs.source import UnreadableError

__all__ = [
    "BROKEN_OBJECT",
    "HEAD_BYTES",
    "JsonKind",
    "json_kind",
    "refuse_binary",
    "refuse_other_content",
    "unusable_content",
]

# Bytes that decide whether content is text: as many as Git looks at.
HEAD_BYTES = 8000

# A JSON array, one object per line, or a description of anything else.
JsonKind = str
BROKEN_OBJECT = "one object over several lines"

_COMPRESSED = "is compressed with {}, but its name does not end in {}; rename or decompress it"
_UNPACK = "is {}; unpack it first"
_IMAGE = "is an image; only texts can be compared"
_OTHER_FORMAT = "is {}; set format='{}' to read it"
_ENCODED = "is encoded as {}; set encoding='{}', or convert it to UTF-8"
OFFICE = "is {}; save it as {} first"

# First bytes, and the reason why such a file is not text. Longer signatures precede their own beginnings.
SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "is a PDF document; extract its text first, for example with pdftotext"),
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        OFFICE.format("a legacy Office document (.doc, .xls or .ppt)", "text or CSV"),
    ),
    (b"\x89PNG\r\n\x1a\n", _IMAGE),
    (b"\xff\xd8\xff", _IMAGE),
    (b"GIF87a", _IMAGE),
    (b"GIF89a", _IMAGE),
    (b"II*\x00", _IMAGE),
    (b"MM\x00*", _IMAGE),
    (b"SQLite format 3\x00", "is an SQLite database; export its table as CSV first"),
    (b"PAR1", _OTHER_FORMAT.format("a Parquet file", "parquet")),
    (b"ARROW1", _OTHER_FORMAT.format("an Arrow file", "arrow")),
    (b"FEA1", "is a Feather file of version 1; write it as version 2 first"),
    (b"\xff\xff\xff\xff", _OTHER_FORMAT.format("an Arrow stream", "arrow")),
    (b"Obj\x01", "is an Avro file; convert it to Parquet or JSON lines first"),
    (b"\x1f\x8b", _COMPRESSED.format("gzip", ".gz")),
    (b"\x28\xb5\x2f\xfd", _COMPRESSED.format("zstd", ".zst")),
    *((b"BZh%d1AY&SY" % level, _COMPRESSED.format("bz2", ".bz2")) for level in range(1, 10)),
    (b"\xfd7zXZ\x00", "is compressed with xz, which cannot be read; decompress it, or use gzip, bz2 or zstd"),
    (b"\x04\x22\x4d\x18", "is compressed with lz4, which cannot be read; decompress it, or use gzip, bz2 or zstd"),
    (b"7z\xbc\xaf\x27\x1c", _UNPACK.format("a 7-Zip archive")),
    (b"Rar!\x1a\x07", _UNPACK.format("a RAR archive")),
    (b"PK\x05\x06", _UNPACK.format("an empty ZIP archive")),
    (codecs.BOM_UTF32_LE, _ENCODED.format("UTF-32", "utf-32")),
    (codecs.BOM_UTF32_BE, _ENCODED.format("UTF-32", "utf-32")),
    (codecs.BOM_UTF16_LE, _ENCODED.format("UTF-16", "utf-16")),
    (codecs.BOM_UTF16_BE, _ENCODED.format("UTF-16", "utf-16")),
)
ZIP = b"PK\x03\x04"
# What the names and first entries of a ZIP archive show.
ZIP_MEMBERS: tuple[tuple[bytes, str], ...] = (
    (b"mimetypeapplication/vnd.oasis.opendocument.text", OFFICE.format("an OpenDocument text (.odt)", "text")),
    (b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet", OFFICE.format("an OpenDocument table (.ods)", "CSV")),
    (b"mimetypeapplication/vnd.oasis.opendocument", OFFICE.format("an OpenDocument file", "text")),
    (b"mimetypeapplication/epub+zip", OFFICE.format("an EPUB book", "text")),
    (b"xl/", OFFICE.format("an Excel workbook (.xlsx)", "CSV")),
    (b"word/", OFFICE.format("a Word document (.docx)", "text")),
    (b"ppt/", OFFICE.format("a PowerPoint presentation (.pptx)", "text")),
    (b"[Content_Types].xml", OFFICE.format("an Office document (.docx, .xlsx or .pptx)", "text or CSV")),
)
TAR_OFFSET, TAR = 257, b"ustar"
# Share of NUL bytes at even or odd positions from which text is UTF-16 without a byte order mark.
UTF16_SHARE = 0.4


def unusable_content(head: bytes) -> str | None:
    """Return why content that begins with these bytes is not text; None if it may be text."""
    if head.startswith(ZIP):
        return next((reason for member, reason in ZIP_MEMBERS if member in head), _UNPACK.format("a ZIP archive"))
    if head[TAR_OFFSET:].startswith(TAR):
        return _UNPACK.format("a tar archive")
    reason = next((reason for signature, reason in SIGNATURES if head.startswith(signature)), None)
    return reason or (_binary_reason(head[:HEAD_BYTES]) if b"\0" in head[:HEAD_BYTES] else None)


def _binary_reason(head: bytes) -> str | None:
    """Return why bytes with NUL among them are not text: text that is valid UTF-8 may hold a NUL."""
    half = max(1, len(head) // 2)
    if len(head) > 2 and max(head[0::2].count(0), head[1::2].count(0)) / half > UTF16_SHARE > _lesser_share(head):
        byte_order = "be" if head[0::2].count(0) > head[1::2].count(0) else "le"
        return _ENCODED.format("UTF-16", f"utf-16-{byte_order}")
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return "is binary data, not text"
    return None


def _lesser_share(head: bytes) -> float:
    """Return the share of NUL bytes at the positions that have fewer of them."""
    return min(head[0::2].count(0), head[1::2].count(0)) / max(1, len(head) // 2)


def refuse_other_content(head: bytes, name: str, magic: tuple[bytes, ...], compression: str | None) -> None:
    """Raise ``UnreadableError`` if a table begins with other bytes than its format.

    Args:
        head: The first bytes; empty for an empty file, which the reader of the format reports.
        name: The format, such as ``a Parquet file``.
        magic: First bytes of the format.
        compression: The compression that the name of the file shows.
    """
    if not head or head.startswith(magic):
        return
    if compression is not None:
        raise UnreadableError(f"is {name} compressed with {compression}, which cannot be read; decompress it first")
    found = unusable_content(head) or f"begins with {head[:12].decode('utf-8', 'backslashreplace')!r}; check its format"
    raise UnreadableError(f"is not {name}: it {found}")


def refuse_binary(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same chunks.

    Raises:
        UnreadableError: If the first chunk shows that they are not text.
    """
    unchecked = True
    for chunk in chunks:
        reason = unusable_content(chunk) if unchecked else None
        if reason is not None:
            raise UnreadableError(reason)
        unchecked = False
        yield chunk


def json_kind(first_line: bytes) -> JsonKind:
    """Return ``json`` for an array, ``jsonl`` for an object on one line, otherwise what was found.

    Args:
        first_line: The first line that is not blank.
    """
    text = first_line.strip()
    if text.startswith(b"["):
        return "json"
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        shown = text[:20].decode("utf-8", "replace")
        return BROKEN_OBJECT if text.startswith(b"{") else f"text that begins with {shown!r}"
    return "jsonl" if isinstance(value, dict) else f"a value of type {type(value).__name__}"
