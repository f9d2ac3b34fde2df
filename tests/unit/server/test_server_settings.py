"""Server settings: defaults, rules, and that other addresses than the loopback require tokens."""

import math
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import pytest
from support.expect import error_message

from minwise.cli.command import command
from minwise.errors import ConfigError
from minwise.server.settings import SIZES, ServerSettings

# Valid and invalid values of every setting with a rule.
LIMITS: dict[str, tuple[list[Any], list[Any]]] = {
    "port": ([0, 1, 65_535], [-1, 65_536, 80.0, "80", True, None]),
    "cache": ([0, "0B", "256MB", 10**10], [-1, "lots", None, 1.5, True]),
    "max_document": ([1, "1B", "1GB", "1.5 MiB", 10**9], [0, -1, "0", "2GB", "many", "", True, None, 1.5, "1e6"]),
    "max_metadata": ([1, "64KB", 10**9], [0, "0kB", 10**9 + 1, None]),
    "max_compare": ([1, "200KB", 10**9], [0, "lots", 10**9 + 1, False]),
    "max_request": ([1, "16MB", 10**9], [0, "0kB", 10**9 + 1, "MB", False, None]),
    "max_documents": ([1, 10**6], [0, -5, 10**6 + 1, 1.0, "10", True]),
    "max_depth": ([1, 200], [0, 201, "32", None]),
    "max_in_flight": ([1, 10**4], [0, 10**4 + 1, 2.5, None]),
    "max_connections": ([1, 10**5], [0, 10**5 + 1, "x", None]),
    "receive_timeout": ([0.1, 10, 86_400], [0, -1, 86_401, math.nan, math.inf, "10", True, None]),
    "drain_timeout": ([0.1, 10, 86_400], [0, -0.5, 1e9, math.nan, "10", False, None]),
}
IN_BYTES: dict[object, str] = {"0": "0", "0kB": "0", "2GB": "2000000000"}
CASES = [(name, value) for name, (good, _) in LIMITS.items() for value in good]
FAULTS = [(name, value) for name, (_, bad) in LIMITS.items() for value in bad]


def settings(**given: Any) -> ServerSettings:  # noqa: ANN401 - also invalid ones
    """Return settings of an index that need not exist."""
    return ServerSettings(**{"index": Path("news.mw"), **given})


def test_defaults() -> None:
    """Those of the guide."""
    made = settings()
    assert {field.name: getattr(made, field.name) for field in fields(made)} == {
        "index": Path("news.mw"), "host": "127.0.0.1", "port": 8765, "token_file": None, "read_only": False,
        "allow_host": (), "cache": 256 * 10**6, "max_document": 10**6, "max_metadata": 64_000, "max_compare": 200_000,
        "max_request": 16 * 10**6, "max_documents": 1000, "max_depth": 32, "max_in_flight": 64, "max_connections": 1000,
        "receive_timeout": 10, "drain_timeout": 10,
    }  # fmt: skip
    assert made.is_loopback


def test_the_command_has_the_same_settings_and_defaults() -> None:
    with command.commands["serve"].make_context("serve", ["--index", "news.mw"]) as context:
        given = {field.name: context.params[field.name] for field in fields(ServerSettings)}
    assert settings(**given) == settings()
    options = {one.name: one.opts for one in command.commands["serve"].params}
    assert {name: options[name] for name in given} == {name: [f"--{name.replace('_', '-')}"] for name in given}


def test_settings_are_immutable_and_keyword_only() -> None:
    made = settings()
    with pytest.raises(FrozenInstanceError):
        made.port = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        ServerSettings(Path("news.mw"))  # type: ignore[call-arg]


@pytest.mark.parametrize(("name", "value"), CASES)
def test_valid_values_are_accepted(name: str, value: object) -> None:
    sizes = dict.fromkeys(SIZES, value) if name == "max_request" else {"max_request": 10**9}
    settings(**{**sizes, name: value})


@pytest.mark.parametrize("name", [size for size in SIZES if size != "max_request"])
def test_sizes_are_at_most_that_of_a_request(name: str) -> None:
    small = dict.fromkeys(SIZES, 1000)
    settings(**small)
    message = error_message(ConfigError, lambda: settings(**{**small, name: 1001}))
    rule = "must be at most max_request, 1000, since it is part of a request"
    assert message == f"{name} {rule}, got 1001"
    usual = getattr(settings(), name)
    message = error_message(ConfigError, lambda: settings(**{**small, name: usual}))
    assert message.endswith(f", got {usual}")


@pytest.mark.parametrize(("name", "value"), FAULTS)
def test_invalid_values_are_refused(name: str, value: object) -> None:
    """With the name of the option and the value, sizes in bytes."""
    message = error_message(ConfigError, lambda: settings(**{name: value}))
    assert message.startswith(f"{name} must be ")
    assert message.endswith(f", got {IN_BYTES.get(value, repr(value))}")


@pytest.mark.parametrize("value", ["", None, 5, b"news.mw"])
@pytest.mark.parametrize("name", ["index", "token_file"])
def test_invalid_paths_are_refused(name: str, value: object) -> None:
    """An empty token file must not mean a server without tokens."""
    if name == "token_file" and value is None:
        assert settings(token_file=None).token_file is None
        return
    message = error_message(ConfigError, lambda: settings(**{name: value}))
    assert message == f"{name} must be a path, got {value!r}"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.255.255.254", "::1", "localhost"])
def test_the_loopback_needs_no_token(host: str) -> None:
    assert settings(host=host).is_loopback


@pytest.mark.parametrize(
    "host",
    [
        "0.0.0.0", "::", "192.168.1.5", "10.0.0.1", "169.254.0.1", "8.8.8.8", "fe80::1", "::ffff:10.0.0.1", "128.0.0.1",
        "126.255.255.255", "example.org", "localhost.example.org", "localhost.", "127.0.0.1.example.org", "0", "127",
        "2130706433", "0x7f.1", "[::1]", " 127.0.0.1", "127.0.0.1\n", "*",
    ],
)  # fmt: skip
def test_other_addresses_need_tokens(host: str, tmp_path: Path) -> None:
    """Also names that only resemble the loopback; the message has the remedy."""
    message = error_message(ConfigError, lambda: settings(host=host))
    assert message.startswith("host must be ")
    assert f"got {host!r}" in message


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "news.example.org"])
def test_any_address_is_valid_with_tokens(host: str) -> None:
    assert not settings(host=host, token_file=Path("tokens.txt")).is_loopback
    remedy = "make one with: minwise token FILE --read --write"
    assert error_message(ConfigError, lambda: settings(host=host)).endswith(remedy)


@pytest.mark.parametrize("host", ["", None, 5, b"127.0.0.1", "a b", "http://127.0.0.1", "127.0.0.1/8"])
def test_invalid_hosts_are_refused(host: object) -> None:
    """Even with tokens; an empty one would mean every address."""
    message = error_message(ConfigError, lambda: settings(host=host, token_file=Path("tokens.txt")))
    assert message.startswith("host must be ")
    assert f"got {host!r}" in message


@pytest.mark.parametrize("names", [("news.example.org",), ("a.example", "b.example"), ("10.0.0.5",), ("news",), ()])
def test_allowed_hosts_are_accepted(names: tuple[str, ...]) -> None:
    assert settings(allow_host=names).allow_host == names


@pytest.mark.parametrize(
    "name", ["", "*", "*.example.org", "http://a.example", "a.example/", "a b", "a.example:80", "a@b", None, 5]
)
def test_invalid_allowed_hosts_are_refused(name: object) -> None:
    """A pattern or a URL would never match."""
    message = error_message(ConfigError, lambda: settings(allow_host=("good.example", name)))
    assert message.startswith("allow_host must be ")
    assert f"got {name!r}" in message


def test_a_string_of_allowed_hosts_is_refused() -> None:
    """It would be taken as a tuple of letters."""
    assert "allow_host" in error_message(ConfigError, lambda: settings(allow_host="news.example.org"))


def test_sizes_may_have_units() -> None:
    made = settings(max_document="2MB", max_request="32MiB")
    assert (made.max_document, made.max_request) == (2 * 10**6, 32 * 2**20)


def test_limits_contain_no_paths_or_hosts() -> None:
    limits = settings(max_documents=5, token_file=Path("tokens.txt")).limits
    assert limits["max_documents"] == 5
    assert set(limits) == {
        field.name for field in fields(ServerSettings) if field.name.startswith("max_") or "timeout" in field.name
    }
    assert all(isinstance(value, (int, float)) for value in limits.values())
