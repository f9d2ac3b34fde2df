"""Settings: the rules that more than one of them shares."""

from operator import index

from minwise.errors import ConfigError

__all__ = ["check_choice", "check_seed", "check_threads", "check_whole"]


def check_whole(name: str, value: object, least: int, most: int) -> None:
    """Refuses a value that is no whole number between ``least`` and ``most``."""
    try:
        fits = not isinstance(value, bool) and least <= index(value) <= most  # type: ignore[arg-type]
    except TypeError:
        fits = False
    if not fits:
        raise ConfigError(f"{name} must be a whole number from {least} to {most}, got {value!r}")


def check_seed(name: str, seed: object) -> None:
    """Refuses a seed that is no unsigned 64-bit number."""
    check_whole(name, seed, 0, 2**64 - 1)


def check_threads(threads: int | None) -> int:
    """The number of threads as the kernel takes it: 0 stands for all cores."""
    if threads is None:
        return 0
    check_whole("threads", threads, 1, 1024)
    return threads


def check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    """Refuses a value that is none of ``choices``."""
    if value not in choices:
        raise ConfigError(f"{name} must be one of {', '.join(map(str, choices))}, got {value!r}")
