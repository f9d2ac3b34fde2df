"""`minwise serve`: how it starts, what it says, how it ends, and what keeps it from starting."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from server.running import PATIENCE_SECONDS, Server, serving, start
from support.commands import FAILURE, INPUT_OUTPUT, INTERRUPTED, MINWISE, OK, USAGE, digest, one_line, run

import minwise as mw
from minwise.server.tokens import make_token

PACKAGES = ("httptools", "prometheus_client", "uvloop")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an empty index."""
    mw.Index.create(tmp_path / "news.mw", threshold=0.7, shingle="word:3", recall=0.95, seed=7).close()
    return tmp_path


def refusal(folder: Path, status: int, *options: str) -> str:
    """The one line with which a start ends."""
    return one_line(run(folder, "serve", "--port", "0", *options), status)


def settings_of(index: Path) -> dict[str, Any]:
    """What an index was made with."""
    with mw.Index.open(index) as opened:
        return dict(opened.stats()["settings"])


def test_it_says_where_it_is_and_how_to_stop_it(folder: Path) -> None:
    """A line on standard output as soon as it listens, with the real port; the rest is on standard error."""
    command = [MINWISE, "serve", "--index", "news.mw", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        url = line.split()[-1]
        assert Server(process, url).get("/healthz").json == {"status": "ok"}
        process.send_signal(signal.SIGTERM)
        rest, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert line == f"minwise: serving news.mw at {url}\n"
    assert not url.endswith(":0/")
    assert rest == b""
    assert b"Ctrl-C" in errors
    assert b"Traceback" not in errors
    assert errors.count(b"\n") == 1
    assert process.returncode == OK


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, OK), (signal.SIGINT, INTERRUPTED)])
def test_it_ends_when_it_is_told(folder: Path, number: signal.Signals, status: int) -> None:
    """Fine after SIGTERM, interrupted after Ctrl-C; either way what was stored is there, and the index is free."""
    server = start(folder / "news.mw")
    with server.process:
        assert server.add("a", "the ferry leaves at six").status == 200
        assert server.stop(number) == status
    with mw.Index.open(folder / "news.mw", "w") as index:
        assert "a" in index
        assert index.verify() == []


def test_create_makes_an_index_with_its_options(tmp_path: Path) -> None:
    """All those of `minwise index create`, under their names; standard error says what was made."""
    options = [
        "--shingle",
        "char:9",
        "--bag",
        "--threshold",
        "0.6",
        "--scheme",
        "minhash",
        "--seed",
        "7",
        "--bands",
        "12",
    ]
    options += ["--rows", "4", "--max-bucket", "100", "--store-text"]
    with serving(tmp_path / "deep" / "new.mw", "--create", *options) as server:
        shown = server.get("/v1/stats").json["settings"]
    expected = {
        "shingle": "char:9", "bag": True, "threshold": 0.6, "scheme": "minhash", "bands": 12, "rows": 4,
        "max_bucket": 100, "store": "text",
    }  # fmt: skip
    made = settings_of(tmp_path / "deep" / "new.mw")
    assert {name: made[name] for name in expected} == {name: shown[name] for name in expected} == expected
    assert made["seed"] == 7
    assert "seed" not in shown


def test_create_says_so_on_standard_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A wrong path would otherwise be an empty index that nobody notices; a second start has nothing to say."""
    plan = mw.plan(0.7)
    made = f"an empty index; {plan.bands} bands × {plan.rows} rows find {plan.recall:.2%} of documents at 0.7"
    for first in (f"minwise: {tmp_path / 'new.mw'}: {made}\n", ""):
        with serving(tmp_path / "new.mw", "--create", "--threshold", "0.7") as server:
            assert server.get("/readyz").status == 200
        assert capfd.readouterr().err.startswith(f"{first}minwise: stop")


def test_create_takes_an_empty_directory(tmp_path: Path) -> None:
    """Such as a volume that was just mounted."""
    (tmp_path / "volume").mkdir()
    with serving(tmp_path / "volume", "--create") as server:
        assert server.get("/v1/stats").json["documents"] == 0


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--threshold", "0.6", "--recall", "0.9", "--slots", "128", "--shingle", "word:2", "--store-text"],
        ["--bands", "12", "--rows", "4", "--recall", "0.9", "--slots", "64"],
        ["--bag", "--scheme", "minhash", "--sketch-only", "--max-bucket", "32", "--seed", "3"],
    ],
)
def test_the_same_command_starts_it_again(tmp_path: Path, options: list[str]) -> None:
    """With what was stored before, whatever the options."""
    for fate in ("added", "unchanged"):
        with serving(tmp_path / "new.mw", "--create", *options) as server:
            assert server.add("a", "the ferry leaves at six").json["results"][0]["fate"] == fate


@pytest.mark.parametrize(
    ("options", "theirs", "ours"),
    [
        (["--threshold", "0.8"], "0.7", "0.8"),
        (["--recall", "0.99"], "0.95", "0.99"),
        (["--shingle", "word:5"], "word:3", "word:5"),
        (["--bag"], "False", "True"),
        (["--scheme", "minhash"], "fast", "minhash"),
        (["--slots", "50"], "bands × ", "50, which gives "),
        (["--bands", "5", "--rows", "2"], "", "5"),
        (["--seed", "8"], "7", "8"),
        (["--max-bucket", "65"], "10000", "65"),
        (["--store-text"], "an index of shingles", "an index of text"),
        (["--sketch-only"], "an index of shingles", "an index of sketch"),
        (["--max-bucket", "65", "--create"], "10000", "65"),
    ],
)
def test_an_option_that_differs_from_the_index(folder: Path, options: list[str], theirs: str, ours: str) -> None:
    """Is refused with both values; the index stays as it is."""
    before = digest(folder)
    line = refusal(folder, USAGE, "--index", "news.mw", *options)
    assert line.startswith(f"minwise: {options[0]} must be that of news.mw, ")
    there, _, here = line.partition(", got ")
    assert theirs in there
    assert here.startswith(ours)
    assert line.endswith("; leave it out, or create another index\n")
    assert settings_of(folder / "news.mw")["threshold"] == 0.7
    assert {name for name in digest(folder) if not name.endswith(("-shm", "-wal"))} <= set(before)


def test_a_secret_seed_is_not_told(tmp_path: Path) -> None:
    """Nor whether a guess is right."""
    mw.Index.create(tmp_path / "news.mw").close()
    with mw.Index.open(tmp_path / "news.mw") as index:
        seed = index.shingler.seed
    for guess in (seed, 1):
        line = refusal(tmp_path, USAGE, "--index", "news.mw", "--seed", str(guess))
        there = "--seed must be that of news.mw, which is secret"
        assert line == f"minwise: {there}, got {guess}; leave it out, or create another index\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--store-text", "--sketch-only"], "exclude each other"),
        (["--threshold", "2"], "threshold must"),
        (["--shingle", "word:0"], "word:0"),
        (["--bands", "5"], "rows"),
        (["--port", "70000"], "port must be a whole number from 0 to 65535, got 70000"),
        (["--max-document", "0"], "max-document must"),
        (["--max-request", "lots"], "max-request must be a size"),
        (["--max-in-flight", "0"], "max-in-flight must"),
        (["--receive-timeout", "0"], "receive-timeout must"),
        (
            ["--max-request", "100KB"],
            "--max-document must be at most --max-request, 100000, since it is part of a request, got 1000000",
        ),
        (["--cache", "lots"], "cache must be a size"),
        (["--read-only"], "got both"),
        (["--host", "0.0.0.0"], "host must be a loopback address"),
        (["--allow-host", "http://x"], "allow-host must"),
        (["--token-file", ""], "token-file must be a path"),
    ],
)
def test_a_setting_that_breaks_its_rule(tmp_path: Path, options: list[str], message: str) -> None:
    """One line, exit code 2, and no index is made."""
    assert message in refusal(tmp_path, USAGE, "--index", "new.mw", "--create", *options)
    assert list(tmp_path.iterdir()) == []


def test_an_index_of_records_is_refused(tmp_path: Path) -> None:
    """The service takes texts."""
    mw.Index.create(tmp_path / "people.mw", fields="name:char:3").close()
    line = refusal(tmp_path, USAGE, "--index", "people.mw")
    assert line.endswith(
        "index must be of texts for a service, which takes texts, got one of sets or records: people.mw\n"
    )
    line = refusal(tmp_path, USAGE, "--index", "new.mw", "--create", "--shingle", "set")
    assert line.endswith("--shingle must be word:N, char:N or byte:N for a service, which takes texts, got set\n")
    assert not (tmp_path / "new.mw").exists()


def test_no_index(folder: Path) -> None:
    """The name, and the option that makes one; what is something else is left as it is."""
    line = refusal(folder, INPUT_OUTPUT, "--index", "missing.mw")
    assert line == "minwise: missing.mw: No such index; --create creates it\n"
    (folder / "file").write_text("x")
    (folder / "other").mkdir()
    (folder / "other" / "file").write_text("x")
    for name in ("file", "other"):
        for create in ([], ["--create"], ["--create", "--threshold", "0.7"]):
            assert name in refusal(folder, FAILURE, "--index", name, *create)
    assert [path.name for path in (folder / "other").iterdir()] == ["file"]


def test_no_index_at_all(tmp_path: Path) -> None:
    """Has to be named."""
    done = run(tmp_path, "serve")
    assert done.status == USAGE
    assert "--index" in done.err


def test_a_port_that_is_taken(folder: Path) -> None:
    """The address and the reason; a server that runs is not disturbed."""
    with serving(folder / "news.mw") as server:
        mw.Index.create(folder / "other.mw").close()
        command = ("serve", "--index", "other.mw", "--port", str(server.port))
        line = one_line(run(folder, *command), INPUT_OUTPUT)
        assert line == f"minwise: 127.0.0.1:{server.port}: Address already in use\n"
        assert server.get("/readyz").status == 200


def test_a_port_that_is_taken_by_something_else(folder: Path) -> None:
    """Whatever listens there."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        line = one_line(run(folder, "serve", "--index", "news.mw", "--port", port), INPUT_OUTPUT)
    assert line == f"minwise: 127.0.0.1:{port}: Address already in use\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may listen everywhere")
def test_a_port_that_is_not_allowed(folder: Path) -> None:
    """Below 1024 only some may listen."""
    line = one_line(run(folder, "serve", "--index", "news.mw", "--port", "1"), INPUT_OUTPUT)
    assert line == "minwise: 127.0.0.1:1: Permission denied\n"


def test_an_address_that_is_not_here(folder: Path) -> None:
    """192.0.2.1 is nobody's (RFC 5737)."""
    make_token(folder / "tokens.txt", ["read"])
    line = refusal(folder, INPUT_OUTPUT, "--index", "news.mw", "--host", "192.0.2.1", "--token-file", "tokens.txt")
    assert line == "minwise: 192.0.2.1:0: Cannot assign requested address\n"


@pytest.mark.parametrize(
    ("content", "mode", "status", "message"),
    [
        (None, 0, INPUT_OUTPUT, "tokens.txt: No such file or directory"),
        ("", 0o600, USAGE, "tokens.txt must have a token, got none"),
        ("read sha256:00 x\n", 0o600, FAILURE, "tokens.txt:1: must be RIGHTS sha256:HASH NAME"),
        ("# nothing\n", 0o666, USAGE, "tokens.txt must be writable by its owner only"),
    ],
)
def test_a_token_file_that_is_wrong(folder: Path, content: str | None, mode: int, status: int, message: str) -> None:
    """The server does not start; it never starts without tokens because they could not be read."""
    if content is not None:
        (folder / "tokens.txt").write_text(content)
        (folder / "tokens.txt").chmod(mode)
    assert message in refusal(folder, status, "--index", "news.mw", "--token-file", "tokens.txt")


def test_an_index_that_another_process_writes(folder: Path) -> None:
    """Is refused with the number of that process, unless it is only read."""
    with mw.Index.open(folder / "news.mw", "w") as index:
        line = refusal(folder, USAGE, "--index", "news.mw")
        assert f"news.mw is open for writing in process {os.getpid()}; one process writes at a time" in line
        with serving(folder / "news.mw", "--read-only", "--create") as server:
            index.add(["a"], ["the ferry leaves at six"])
            assert server.get("/v1/documents/a").status == 200
            assert server.add("b", "a text").error == "read_only"


def test_a_second_server(folder: Path) -> None:
    """Of one index is refused, and one that only reads may run beside it."""
    with serving(folder / "news.mw") as server:
        assert str(server.process.pid) in refusal(folder, USAGE, "--index", "news.mw")
        server.add("a", "the ferry leaves at six")
        with serving(folder / "news.mw", "--read-only") as reader:
            assert reader.get("/v1/documents/a").status == 200


@pytest.mark.parametrize("package", PACKAGES)
def test_without_the_extra(tmp_path: Path, package: str) -> None:
    """One line with the remedy, exit code 2, and no index is made."""
    program = f"import sys; sys.modules[{package!r}] = None; from minwise.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "serve", "--index", "new.mw", "--create", "--port", "0"],
        cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    remedy = "install minwise with the extra server"
    assert done.stderr == f"minwise: serve needs the packages of the extra server, got no {package}; {remedy}\n"
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert list(tmp_path.iterdir()) == []


def test_a_token_is_drawn_without_the_extra(tmp_path: Path) -> None:
    """Another machine may have it."""
    missing = "".join(f"sys.modules[{package!r}] = None; " for package in PACKAGES)
    program = f"import sys; {missing}from minwise.cli import main; main()"
    drawing = [sys.executable, "-c", program, "token", "tokens.txt", "--read"]
    assert subprocess.run(drawing, cwd=tmp_path, capture_output=True, check=True).stdout.startswith(b"mw_")


def test_other_commands_do_without_the_extra(tmp_path: Path) -> None:
    """Neither the library nor the command imports what only the server needs."""
    program = (
        "import sys, json, minwise, minwise.cli, minwise.server, minwise.server.tokens\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    loaded = set(json.loads(done.stdout))
    assert "minwise" in loaded
    assert not loaded & {*PACKAGES, "starlette", "asyncio"}


def test_from_python(folder: Path) -> None:
    """The same, by two names of minwise.server."""
    program = (
        "from minwise.server import ServerSettings, serve\n"
        "serve(ServerSettings(index='news.mw', port=0, max_documents=5))\n"
        "print('ended')"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=folder, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        server = Server(process, process.stdout.readline().decode().split()[-1])
        assert server.get("/v1/stats").json["limits"]["max_documents"] == 5
        assert server.stop() == OK
        assert process.stdout.read() == b"ended\n"


def test_help(tmp_path: Path) -> None:
    """Has an example, and the options of `minwise index create` for texts."""
    done = run(tmp_path, "serve", "--help")
    assert done.status == OK
    assert "  minwise serve --index news.mw --create --store-text\n" in done.out
    made = run(tmp_path, "index", "create", "--help").out
    names = set(re.findall(r"^  (--[a-z-]+)", made, re.MULTILINE)) - {"--json", "--quiet", "--verbose", "--log-format"}
    assert len(names) > 10
    assert names - set(done.out.split()) == {"--fields", "--weights"}
