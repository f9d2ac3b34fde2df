"""Expectations shared by several tests."""

from collections.abc import Callable

import pytest

import minwise as mw


def error_message(kind: type[mw.MinwiseError], call: Callable[[], object]) -> str:
    """Return the message of the error that a call raises; it must be one line and not show another error."""
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    assert "\n" not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    return str(error)
