"""Exceptions raised by minwise.

::

    MinwiseError
    ├── ConfigError    (ValueError)  a setting has an invalid value
    ├── InputError     (ValueError)  a document, text or element is invalid
    ├── MismatchError  (ValueError)  objects made with different settings were combined
    └── FormatError    (ValueError)  a file is damaged, truncated or of another format

A message is one line: the setting or file, the rule, the value received and, where there is one, the remedy.
"""

__all__ = ["ConfigError", "FormatError", "InputError", "MinwiseError", "MismatchError"]


class MinwiseError(Exception):
    """Base class of all exceptions of this package."""


class ConfigError(MinwiseError, ValueError):
    """A setting has an invalid value, such as ``slots must be at least 1, got 0``."""


class InputError(MinwiseError, ValueError):
    """A document, text or element is invalid: not a string, null, or not UTF-8."""


class MismatchError(MinwiseError, ValueError):
    """Two objects made with different settings were combined; the message contains both values."""


class FormatError(MinwiseError, ValueError):
    """A file is damaged, truncated, of another format version, or was not written by minwise."""
