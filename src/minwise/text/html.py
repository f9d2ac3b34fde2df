"""Extraction of the visible text of HTML pages, without markup, scripts and styles.

The parser, selectolax, implements HTML5, so it reads unclosed, wrongly nested and truncated markup as browsers do.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from minwise import _kernel
from minwise._internal.arrays import from_bytes
from minwise.errors import ConfigError

__all__ = ["html_to_text"]

# Elements whose contents a browser does not show, or does not show as text.
HIDDEN_ELEMENTS = {
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
# Elements that start and end a line; any other element may occur even in the middle of a word.
BLOCK_ELEMENTS = set(
    "address article aside blockquote br caption dd details dialog div dl dt fieldset figcaption figure footer form "  # noqa: SIM905
    "h1 h2 h3 h4 h5 h6 header hr legend li main nav ol option p pre section summary table td th tr ul".split()
)


def html_to_text(texts: pa.Array) -> tuple[pa.Array, dict[int, str]]:
    r"""Return the visible text of HTML pages, one line per block element.

    A null stays null. A page that is not UTF-8 is returned unchanged, so that the kernel reports it. A page whose cost
    would not be proportional to its length, such as one of 100,000 nested elements, is not parsed.

    Args:
        texts: Arrow column of pages.

    Returns:
        A large_binary column of UTF-8 texts, and the reason of each page that is null because it is not parsed.

    Raises:
        ConfigError: If the package selectolax is not installed.

    >>> page = "<title>News</title><p>One <b>w</b>ord.<script>alert(1)</script><p>Two&amp;three"
    >>> html_to_text(pa.array([page]))[0].to_pylist()
    [b'One word.\nTwo&three']
    """
    parser = _parser()
    if not len(texts):
        return texts, {}
    visible: list[bytes | None] = []
    problems: dict[int, str] = {}
    for row, value in enumerate(texts.cast(pa.large_binary())):
        page = value.as_py()
        problem = None if page is None else _kernel.html_problem(page)
        problems |= {} if problem is None else {row: problem}
        visible.append(None if page is None or problem else _visible_text(parser, page))
    return from_bytes(visible, pa.large_binary()), problems


def _visible_text(parser: Any, page: bytes) -> bytes:  # noqa: ANN401 - a class of an optional package
    try:
        tree = parser(page.decode())
    except UnicodeDecodeError:
        return page
    text = "".join(_text_nodes(tree.body))
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line).encode("utf-8", "replace")


def _text_nodes(body: Any) -> Iterator[str]:  # noqa: ANN401 - as above
    """Yield the visible text nodes in order, with a line break before and after each block element.

    The walk is not recursive, because the nesting of a page is limited only by its length. It does not modify the
    tree, because removing a node inside a removed one crashes the process.
    """
    ancestors: list[Any] = []
    node = None if body is None else body.child
    while node is not None or ancestors:
        if node is None:
            node = ancestors.pop()
            yield "\n" if node.tag in BLOCK_ELEMENTS else ""
            node = node.next
            continue
        if node.tag == "-text":
            yield node.text_content
        elif node.tag in BLOCK_ELEMENTS:
            yield "\n"
        child = None if node.tag in HIDDEN_ELEMENTS else node.child
        if child is not None:
            ancestors.append(node)
        node = node.next if child is None else child


def _parser() -> Any:  # noqa: ANN401 - as above
    try:
        from selectolax.lexbor import LexborHTMLParser  # imported here because few runs read HTML
    except ImportError:
        raise ConfigError("html requires the package selectolax; install minwise with the extra html") from None
    return LexborHTMLParser
