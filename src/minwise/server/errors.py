"""Errors over HTTP: one shape for everything that goes wrong, a code for programs and a line for people."""

import errno
import logging
from time import monotonic

import msgspec

from minwise.errors import ConfigError, FormatError, InputError
from minwise.server.messages import ErrorAnswer, ErrorDetail

__all__ = ["CODES", "SECURITY_HEADERS", "ApiError", "ClientGoneError", "as_api_error", "busy", "is_full"]

LOG = logging.getLogger("minwise.server")

# The status of each code.
CODES = {
    "bad_json": 400,
    "bad_http": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "wrong_origin": 403,
    "read_only": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "too_slow": 408,
    "id_taken": 409,
    "request_too_large": 413,
    "document_too_large": 413,
    "too_many_documents": 413,
    "unsupported_media_type": 415,
    "wrong_host": 421,
    "bad_value": 422,
    "too_deep": 422,
    "headers_too_large": 431,
    "internal": 500,
    "busy": 503,
    "index_failed": 503,
    "disk_full": 507,
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
MINUTE = 60
# What was logged in the last minute, and when.
_logged: dict[str, float] = {}
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class ApiError(Exception):
    """Something that a client is told.

    Attributes:
        code: One of :data:`CODES`.
        message: One line: what, the rule, the value received and the remedy.
        headers: Header fields that go with it.
    """

    def __init__(self, code: str, message: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(message)
        self.code, self.message, self.headers = code, message, headers

    @property
    def status(self) -> int:
        """The HTTP status."""
        return CODES[self.code]

    @property
    def body(self) -> bytes:
        """The error as it is sent: the message on one line."""
        return msgspec.json.encode(ErrorAnswer(ErrorDetail(self.code, " ".join(self.message.split()))))


class ClientGoneError(Exception):
    """The client has left before it could be answered: there is nobody to be told."""


def busy(what: str) -> ApiError:
    """Too much at a time: the client is to come again."""
    return ApiError("busy", f"{what}; try again in a second", (b"retry-after", b"1"))


def as_api_error(error: Exception) -> ApiError:
    """Whatever was raised, as a client is told; what only a bug raises is logged and told without a detail."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, RecursionError):
        return ApiError("too_deep", "the JSON must not nest so deep")
    if isinstance(error, msgspec.ValidationError):
        return ApiError("bad_value", str(error))
    if isinstance(error, (msgspec.DecodeError, UnicodeDecodeError)):
        return ApiError("bad_json", f"the body must be JSON in UTF-8, without halves of surrogate pairs: {error}")
    if isinstance(error, (ConfigError, InputError)):
        return ApiError("bad_value", str(error))
    if is_full(error):
        _log_now_and_then(f"the disk is full: {error}")
        return ApiError("disk_full", "the disk of the server is full; nothing was stored")
    if isinstance(error, (FormatError, OSError)):
        _log_now_and_then(f"the index failed: {error}")
        return ApiError("index_failed", "the index can not be used now; the log of the server says why")
    LOG.error("a bug in minwise, please report it", exc_info=error)
    return ApiError("internal", "the server failed; its log says why")


def is_full(error: Exception) -> bool:
    """Whether there is no room on the disk: an error that goes by itself."""
    return isinstance(error, OSError) and error.errno in FULL


def _log_now_and_then(message: str) -> None:
    """Logs what many requests may end with, once a minute."""
    now = monotonic()
    if now - _logged.get(message, -MINUTE) >= MINUTE:
        for old in [one for one, then in _logged.items() if now - then >= MINUTE]:
            del _logged[old]
        _logged[message] = now
        LOG.error(message)
