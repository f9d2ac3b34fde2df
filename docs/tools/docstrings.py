"""Docstrings: those of the sources in, Markdown for the pages out. An extension of griffe, which reads the sources.

Our docstrings are plain text with doctests and a few roles, since that is what ``help()`` shows. Left as they are,
Markdown would take a doctest for a quotation and its output for a link.
"""

import re
from typing import Any

import griffe

__all__ = ["MarkdownDocstrings", "to_markdown"]

DOCTEST = re.compile(r"^( *)>>> .*(?:\n\1\S.*)*", re.MULTILINE)
ROLE = re.compile(r":(?:class|data|func|meth|mod):`~?([^`]*)`")


class MarkdownDocstrings(griffe.Extension):  # type: ignore[misc] # nothing of griffe is known to the type checker
    """Rewrites every docstring when it is read."""

    def on_object(self, *, obj: Any, **rest: object) -> None:  # noqa: ANN401 - griffe's own
        """One module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)


def to_markdown(docstring: str) -> str:
    """A docstring with doctests as code blocks, and roles as code.

    >>> print(to_markdown("See :class:`Plan`."))
    See `Plan`.
    """
    plain = ROLE.sub(r"`\1`", docstring.replace("see :class:`Options`", "see [the page of settings](settings.html)"))
    return DOCTEST.sub(lambda found: f"{found[1]}```pycon\n{found[0]}\n{found[1]}```", plain)
