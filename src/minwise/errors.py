"""Errors: everything minwise raises on purpose.

::

    MinwiseError
    ├── ConfigError    (ValueError)  a setting breaks its rule
    ├── InputError     (ValueError)  a document, text or element can not be used
    ├── MismatchError  (ValueError)  two things made with different settings meet
    └── FormatError    (ValueError)  a file is damaged, cut short or not ours

A message is one line: which setting or file, the rule, the value received and, where there is one, the remedy.
"""

__all__ = ["ConfigError", "FormatError", "InputError", "MinwiseError", "MismatchError"]


class MinwiseError(Exception):
    """The base of every error of this package: catch it to catch them all."""


class ConfigError(MinwiseError, ValueError):
    """A setting breaks its rule, such as ``slots must be at least 1, got 0``."""


class InputError(MinwiseError, ValueError):
    """A document, text or element can not be used: not a string, null, or invalid UTF-8."""


class MismatchError(MinwiseError, ValueError):
    """Two things made with different settings were brought together; the message holds both values."""


class FormatError(MinwiseError, ValueError):
    """A file is damaged, cut short, of another format version, or not one of ours."""
