"""Extension of griffe that converts docstrings to Markdown.

Docstrings are plain text with doctests and a few roles, because ``help()`` shows them. Without conversion, Markdown
would render a doctest as a quotation and its output as a link.
"""

import re
from typing import Any

import griffe

__all__ = ["MarkdownDocstrings", "to_markdown"]

DOCTEST = re.compile(r"^( *)>>> .*(?:\n\1\S.*)*", re.MULTILINE)
ROLE = re.compile(r":(?:class|data|func|meth|mod):`~?([^`]*)`")


class MarkdownDocstrings(griffe.Extension):  # type: ignore[misc] # griffe has no type information here
    """Extension that converts every docstring when it is read."""

    def on_object(self, *, obj: Any, **rest: object) -> None:  # noqa: ANN401 - the type of griffe
        """Convert the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)


def to_markdown(docstring: str) -> str:
    """Return a docstring with doctests as code blocks and roles as code.

    >>> print(to_markdown("See :class:`Plan`."))
    See `Plan`.
    """
    plain = ROLE.sub(r"`\1`", docstring.replace("see :class:`Options`", "see [the page of settings](settings.html)"))
    return DOCTEST.sub(lambda match: f"{match[1]}```pycon\n{match[0]}\n{match[1]}```", plain)
