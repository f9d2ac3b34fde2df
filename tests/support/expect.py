"""What more than one test expects."""

from collections.abc import Callable

import pytest

import minwise as mw


def complaint(kind: type[mw.MinwiseError], call: Callable[[], object]) -> str:
    """The message of the error that a call raises: one line, with no other error hanging on it."""
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    assert "\n" not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    return str(error)
