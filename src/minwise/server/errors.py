"""HTTP errors: one JSON shape with a code for programs and a message for people."""

import errno
import logging
from time import monotonic

import msgspec

from minwise.errors import ConfigError, FormatError, InputError
from minwise.server.messages import ErrorAnswer, ErrorDetail

__all__ = ["CODES", "SECURITY_HEADERS", "ApiError", "ClientGoneError", "as_api_error", "busy", "is_disk_full"]

LOG = logging.getLogger("minwise.server")

# HTTP status of each error code.
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
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = [
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
# A message is logged at most once in this time.
LOG_INTERVAL_SECONDS = 60
# Times of the messages that were logged in the last interval.
_logged: dict[str, float] = {}
DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class ApiError(Exception):
    """An error that is sent to the client.

    Attributes:
        code: One of :data:`CODES`.
        message: One line: what is wrong, the rule, the value received and the remedy.
        headers: Additional header fields of the response.
    """

    def __init__(self, code: str, message: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(message)
        self.code, self.message, self.headers = code, message, headers

    @property
    def status(self) -> int:
        """HTTP status."""
        return CODES[self.code]

    @property
    def body(self) -> bytes:
        """The error as JSON, with the message on one line."""
        return msgspec.json.encode(ErrorAnswer(ErrorDetail(self.code, " ".join(self.message.split()))))


class ClientGoneError(Exception):
    """The client has disconnected before it could be answered, so no response is sent."""


def busy(reason: str) -> ApiError:
    """Return the error of an overloaded or stopping server: the client is to repeat the request."""
    return ApiError("busy", f"{reason}; try again in a second", (b"retry-after", b"1"))


def as_api_error(error: Exception) -> ApiError:
    """Convert an exception; one that only a bug raises is logged and sent without details."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, RecursionError):
        return ApiError("too_deep", "the JSON is nested too deep")
    if isinstance(error, msgspec.ValidationError):
        return ApiError("bad_value", str(error))
    if isinstance(error, (msgspec.DecodeError, UnicodeDecodeError)):
        return ApiError("bad_json", f"the body must be JSON in UTF-8, without unpaired surrogates: {error}")
    if isinstance(error, (ConfigError, InputError)):
        return ApiError("bad_value", str(error))
    if is_disk_full(error):
        _log_rarely(f"the disk is full: {error}")
        return ApiError("disk_full", "the disk of the server is full; nothing was stored")
    if isinstance(error, (FormatError, OSError)):
        _log_rarely(f"the index failed: {error}")
        return ApiError("index_failed", "the index is unavailable; see the log of the server")
    LOG.error("a bug in minwise, please report it", exc_info=error)
    return ApiError("internal", "the server failed; see its log")


def is_disk_full(error: Exception) -> bool:
    """Return whether an error is a full disk, from which the server recovers when space is freed."""
    return isinstance(error, OSError) and error.errno in DISK_FULL


def _log_rarely(message: str) -> None:
    """Log a message that many requests may cause, once a minute."""
    now = monotonic()
    if now - _logged.get(message, -LOG_INTERVAL_SECONDS) >= LOG_INTERVAL_SECONDS:
        for expired in [text for text, logged_at in _logged.items() if now - logged_at >= LOG_INTERVAL_SECONDS]:
            del _logged[expired]
        _logged[message] = now
        LOG.error(message)
