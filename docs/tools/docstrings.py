"""Extension of griffe that converts docstrings to Markdown.

Docstrings are plain text with doctests and a few roles, because ``help()`` shows them. Without conversion, Markdown
would render a doctest as a quotation and its output as a link. The ``Keyword Args`` of a call get the types of their
definitions in :mod:`minwise.options`, because griffe does not find the keys of inherited ``TypedDict`` classes.
"""

import re
from types import NoneType, UnionType
from typing import Any, ForwardRef, Union, get_args, get_origin

import griffe

from minwise import options
from minwise.options import definitions
from minwise.text.chunks import ArrowStream

__all__ = ["MarkdownDocstrings", "to_markdown", "with_option_types"]

DOCTEST = re.compile(r"^( *)>>> .*(?:\n\1\S.*)*", re.MULTILINE)
ROLE = re.compile(r":(?:class|data|func|meth|mod):`~?([^`]*)`")
OPTION_CLASS = re.compile(r"Unpack\[(\w+)\]")
KEYWORDS_LINE = re.compile(r"^ +\*\*\w+: .*see Keyword Args\.\n", re.MULTILINE)
KEYWORD_SECTION = re.compile(r"^Keyword Args:\n(?: .*\n)+", re.MULTILINE)
ENTRY = re.compile(r"^    (\w+):", re.MULTILINE)
NAMES: dict[object, str] = {NoneType: "None", **{kind: kind.__name__ for kind in (bool, float, int, str, ArrowStream)}}


class MarkdownDocstrings(griffe.Extension):  # type: ignore[misc] # griffe has no type information here
    """Extension that converts every docstring when it is read."""

    def on_object(self, *, obj: Any, **rest: object) -> None:  # noqa: ANN401 - the type of griffe
        """Convert the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)

    def on_function(self, *, func: Any, **rest: object) -> None:  # noqa: ANN401 - the type of griffe
        """Add the types of settings to the docstring of a call."""
        for parameter in func.parameters:
            found = OPTION_CLASS.fullmatch(str(parameter.annotation))
            if found and func.docstring is not None:
                func.docstring.value = with_option_types(func.docstring.value, getattr(options, found[1]))


def to_markdown(docstring: str) -> str:
    """Return a docstring with doctests as code blocks and roles as code.

    >>> print(to_markdown("See :class:`Plan`."))
    See `Plan`.
    """
    plain = ROLE.sub(r"`\1`", docstring)
    return DOCTEST.sub(lambda match: f"{match[1]}```pycon\n{match[0]}\n{match[1]}```", plain)


def with_option_types(docstring: str, option_class: type) -> str:
    r"""Return a docstring whose keyword arguments have types, and are listed only once.

    >>> print(with_option_types("Keyword Args:\n    slots: Maximum.\n", options.DedupOptions), end="")
    Keyword Args: Settings:
        slots (int): Maximum.
    """
    known = definitions(option_class)

    def with_types(section: re.Match[str]) -> str:
        entries = ENTRY.sub(lambda entry: f"    {entry[1]} ({_type_name(known[entry[1]].type)}):", section[0])
        return entries.replace("Keyword Args:", "Keyword Args: Settings:", 1)

    return KEYWORD_SECTION.sub(with_types, KEYWORDS_LINE.sub("", docstring))


def _type_name(kind: Any) -> str:  # noqa: ANN401 - any annotation
    """Return a type as a signature shows it, but with ``typing.Literal``, by which griffe knows its strings."""
    if get_origin(kind) in (Union, UnionType):
        return " | ".join(map(_type_name, get_args(kind)))
    if isinstance(kind, ForwardRef):
        return kind.__forward_arg__
    return NAMES.get(kind) or re.sub(r"\b(?:\w+\.)+(?!Literal)(?=\w)", "", repr(kind))
