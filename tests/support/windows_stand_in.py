"""Stand-in for Windows on Linux: ``python -m support.windows_stand_in -m minwise ...`` or ``... -c CODE``.

Modules of minwise see ``sys.platform == "win32"``. Modules and functions of POSIX are absent. Files behave as those of
Windows where minwise may depend on it: a directory cannot be opened, a rename does not replace a directory, an open
file cannot be deleted or renamed, a file that is open for reading cannot be synced, and a lock of ``msvcrt`` covers one
byte. Other packages are imported before, and see Linux; ``subprocess`` and ``tempfile`` keep the functions that they
need there. It is no proof that minwise runs on Windows; it shows that no POSIX function is needed.
"""

import builtins
import errno
import fcntl
import importlib
import importlib.abc
import importlib.machinery
import io
import os
import runpy
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import BinaryIO

ABSENT_MODULES = ("fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty", "uvloop")
ABSENT_FUNCTIONS = (
    "chown", "chroot", "copy_file_range", "fchdir", "fchmod", "fchown", "fdatasync", "fork", "forkpty", "fstatvfs",
    "getegid", "geteuid", "getgid", "getgroups", "getloadavg", "getpgid", "getpgrp", "getpriority", "getsid", "getuid",
    "killpg", "lockf", "mkfifo", "mknod", "nice", "posix_fadvise", "posix_fallocate", "pread", "preadv", "pwrite",
    "pwritev", "register_at_fork", "sched_getaffinity", "sched_setaffinity", "sendfile", "set_blocking", "setsid",
    "statvfs", "sync", "sysconf", "tcgetpgrp", "uname", "wait", "wait3", "wait4", "O_CLOEXEC", "O_DIRECTORY",
    "O_NOFOLLOW", "O_NONBLOCK", "O_SYNC", "ST_RDONLY", "WNOHANG",
)  # fmt: skip
ABSENT_SIGNALS = ("SIGHUP", "SIGPIPE", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGCHLD", "SIGKILL", "SIGSTOP")
# Packages that decide at import which functions they use, or that may need one that is absent.
PRELOADED = (
    "apsw", "asyncio", "click", "click.shell_completion", "concurrent.futures.thread", "ctypes", "difflib", "doctest",
    "email", "getpass", "html", "http.client", "httptools", "ipaddress", "json", "logging.handlers", "msgspec",
    "multiprocessing", "numpy", "numpy.lib.format", "orjson", "platform", "prometheus_client", "pyarrow",
    "pyarrow.compute", "pyarrow.csv", "pyarrow.dataset", "pyarrow.fs", "pyarrow.ipc", "pyarrow.parquet", "rich.console",
    "rich.markup", "rich.progress", "rich.table", "rich.text", "selectolax.lexbor", "socket", "statistics",
    "subprocess", "tempfile", "urllib.request", "uuid", "webbrowser", "xml.etree.ElementTree",
)  # fmt: skip
TEST_PACKAGES = ("datasets", "pandas", "polars", "scipy.stats")
FORBIDDEN = set('<>:"|?*')
# Opened by the kernel, which lets others delete the file as the standard library of Rust does.
OPENED_BY_THE_KERNEL = "segment-"


class _WindowsSys:
    """The module ``sys`` with another platform."""

    platform = "win32"

    def __getattr__(self, name: str) -> object:
        return getattr(sys, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(sys, name, value)


class _Loader(importlib.abc.Loader):
    """Loader that shows Windows to a module of minwise."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def exec_module(self, module: types.ModuleType) -> None:
        before, sys.platform = sys.platform, "win32"
        try:
            self._loader.exec_module(module)
        finally:
            sys.platform = before
        if getattr(module, "sys", None) is sys:
            module.sys = _WindowsSys()  # type: ignore[attr-defined]


class _Finder(importlib.abc.MetaPathFinder):
    """Finder of minwise, which shows Linux while any other module is imported."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            loader = _Loader if name.partition(".")[0] == "minwise" and name != "minwise._kernel" else _LinuxLoader
            spec.loader = loader(spec.loader)
        return spec


class _LinuxLoader(_Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        before, sys.platform = sys.platform, "linux"
        try:
            self._loader.exec_module(module)
        finally:
            sys.platform = before


def _msvcrt() -> types.ModuleType:
    """Return a module whose locks are those of Linux for one byte of an open file, also within a process.

    The whole file is locked, too, so that processes outside the stand-in see the lock.
    """
    module, control, command = types.ModuleType("msvcrt"), fcntl.fcntl, fcntl.F_OFD_SETLK
    module.LK_UNLCK, module.LK_LOCK, module.LK_NBLCK = 0, 1, 2  # type: ignore[attr-defined]

    def locking(descriptor: int, mode: int, count: int) -> None:
        start = os.lseek(descriptor, 0, os.SEEK_CUR)
        try:
            control(descriptor, command, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, start, count, 0))
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(0.05 if mode == 1 else 0)
            raise OSError(errno.EDEADLK if mode == 1 else errno.EACCES, "locked") from None

    module.locking = locking  # type: ignore[attr-defined]
    return module


def _open_paths() -> set[str]:
    """Return the files that this process has open, without those of the kernel."""
    found = {os.path.realpath(entry) for entry in Path("/proc/self/fd").iterdir()}
    return {path for path in found if not Path(path).name.startswith(OPENED_BY_THE_KERNEL)}


def _refuse_open(path: str, *_: object) -> None:
    """Raise as Windows does for a file that is open, and for a directory that contains one."""
    real = os.path.realpath(path)
    if any(other == real or other.startswith(f"{real}/") for other in _open_paths()):
        raise PermissionError(errno.EACCES, "the process cannot access the file: it is in use", str(path))


def _refuse_name(path: object, *_: object) -> None:
    if isinstance(path, (str, os.PathLike)) and FORBIDDEN & set(Path(path).name):
        raise OSError(errno.EINVAL, "the name is not valid on Windows", str(path))


def _refuse_directory(path: str, *_: object) -> None:
    _refuse_name(path)
    if Path(path).is_dir():
        raise PermissionError(errno.EACCES, "a directory cannot be opened", str(path))


def _refuse_replacing(source: str, target: str, *_: object) -> None:
    _refuse_directory(target)
    _refuse_open(source)
    _refuse_open(target)


def _refuse_existing(source: str, target: str, *_: object) -> None:
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, "the target exists", str(target))
    _refuse_replacing(source, target)


def _refuse_reader(file: int | BinaryIO) -> None:
    flags = fcntl.fcntl(file, fcntl.F_GETFL)
    if not flags & (os.O_WRONLY | os.O_RDWR):
        raise OSError(errno.EBADF, "a file that is open for reading cannot be synced")


def _guard(module: types.ModuleType, name: str, check: Callable[..., None]) -> None:
    """Call ``check`` before a function."""
    plain = getattr(module, name)

    @wraps(plain)
    def guarded(*arguments: object, **options: object) -> object:
        check(*arguments)
        return plain(*arguments, **options)

    setattr(module, name, guarded)


def _guard_calls() -> None:
    """Make functions fail where those of Windows do."""
    for module, name, check in (
        (os, "open", _refuse_directory),
        (os, "mkdir", _refuse_name),
        (os, "unlink", _refuse_open),
        (os, "remove", _refuse_open),
        (os, "rename", _refuse_existing),
        (os, "replace", _refuse_replacing),
        (os, "fsync", _refuse_reader),
        (io, "open", _refuse_name),
        (builtins, "open", _refuse_name),
    ):
        _guard(module, name, check)
    shutil._use_fd_functions = False  # type: ignore[attr-defined]
    shutil._USE_CP_SENDFILE = False  # type: ignore[attr-defined]


def _keep_posix() -> None:
    """Leave the functions of Linux to modules whose form for Windows cannot run here."""
    for module, name in ((subprocess, "os"), (subprocess, "signal"), (tempfile, "_os")):
        copy = types.ModuleType(name)
        vars(copy).update(vars(getattr(module, name)))
        setattr(module, name, copy)


def install() -> None:
    """Hide POSIX from this process."""
    import signal

    for name in PRELOADED:
        importlib.import_module(name)
    sys.modules["msvcrt"] = _msvcrt()
    _keep_posix()
    _guard_calls()
    for name in ABSENT_MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    for module, names in ((os, ABSENT_FUNCTIONS), (signal, ABSENT_SIGNALS)):
        for name in names:
            vars(module).pop(name, None)
    assert not any(name.partition(".")[0] == "minwise" for name in sys.modules)
    sys.meta_path.insert(0, _Finder())


def pytest_configure() -> None:
    """Hide POSIX from the tests: ``pytest -p support.windows_stand_in``."""
    for name in TEST_PACKAGES:
        importlib.import_module(name)
    user_id = os.getuid
    install()
    os.getuid = user_id  # of pytest's temporary directories


def main() -> None:
    """Run a program, ``-m MODULE`` or ``-c CODE``, with the arguments that follow it."""
    kind, what, *arguments = sys.argv[1:]
    install()
    sys.argv = ["minwise", *arguments]
    if kind == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        exec(compile(what, "<code>", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    main()
