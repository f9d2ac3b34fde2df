"""HTML text: pages in, what a reader sees of them out; markup, scripts and styles are gone.

The parser is selectolax, which is the one of browsers (HTML5): what is not closed, nested wrongly or not finished is
read as they read it.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from minwise._internal.arrays import from_bytes
from minwise.errors import ConfigError

__all__ = ["readable_texts"]

# What a browser does not show, or shows as something else than text.
UNSEEN = {
    "script",
    "style",
    "noscript",
    "template",
    "head",
    "svg",
    "math",
    "iframe",
    "object",
    "canvas",
    "audio",
    "video",
    "select",
    "textarea",
}
# What stands on lines of its own; anything else stands within one, even in the middle of a word.
LINES = set(
    "address article aside blockquote br caption dd details dialog div dl dt fieldset figcaption figure footer form "  # noqa: SIM905
    "h1 h2 h3 h4 h5 h6 header hr legend li main nav ol option p pre section summary table td th tr ul".split()
)


def readable_texts(texts: pa.Array) -> pa.Array:
    r"""What a reader sees of pages; a null stays null, and what is not UTF-8 stays as it is, for the kernel to say so.

    >>> page = "<title>News</title><p>One <b>w</b>ord.<script>alert(1)</script><p>Two&amp;three"
    >>> readable_texts(pa.array([page])).to_pylist()
    [b'One word.\nTwo&three']
    """
    parser = _parser()
    if not len(texts):
        return texts
    pages = texts.cast(pa.large_binary()).to_pylist()
    return from_bytes([None if page is None else _readable(parser, page) for page in pages], pa.large_binary())


def _readable(parser: Any, page: bytes) -> bytes:  # noqa: ANN401 - a class of an optional package
    try:
        tree = parser(page.decode())
    except UnicodeDecodeError:
        return page
    text = "".join(_pieces(tree.body))
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line).encode("utf-8", "replace")


def _pieces(body: Any) -> Iterator[str]:  # noqa: ANN401 - as above
    """What is seen, in order, with a line break on either side of what has lines of its own.

    A walk without recursion, since pages may be nested as deep as their bytes allow, and without changing the tree,
    since removing a node within a removed one would be the end of the process.
    """
    above: list[Any] = []
    node = None if body is None else body.child
    while node is not None or above:
        if node is None:
            node = above.pop()
            yield "\n" if node.tag in LINES else ""
            node = node.next
            continue
        if node.tag == "-text":
            yield node.text_content
        elif node.tag in LINES:
            yield "\n"
        below = None if node.tag in UNSEEN else node.child
        if below is not None:
            above.append(node)
        node = node.next if below is None else below


def _parser() -> Any:  # noqa: ANN401 - as above
    try:
        from selectolax.lexbor import LexborHTMLParser  # here, because few read pages
    except ImportError:
        raise ConfigError("html takes another package, selectolax; install minwise with the extra html") from None
    return LexborHTMLParser
