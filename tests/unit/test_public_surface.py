"""The public surface: what `import minwise` offers, costs and promises."""

import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import minwise as mw
from minwise import errors, options, reference

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(mw.__path__, "minwise.")
    if module.name != "minwise._kernel" and not module.name.endswith("__main__")
)
IMPORT_AGAINST_NUMPY = 4
HEAVY = ("pandas", "polars", "pyspark", "fastapi", "click", "rich")


def test_every_public_name_is_there() -> None:
    assert len(set(mw.__all__)) == len(mw.__all__)
    assert all(hasattr(mw, name) for name in mw.__all__)
    assert sorted(mw.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name)) == mw.__all__


def test_nothing_else_looks_public() -> None:
    packages = {name.split(".")[1] for name in MODULES}
    seen = {name for name in vars(mw) if not name.startswith("_")}
    assert seen - packages <= set(mw.__all__)
    assert set(dir(mw)) == set(mw.__all__)


def test_the_public_api_is_small() -> None:
    """At most 25 names, six of them reserved for planned features."""
    assert len(mw.__all__) <= 19


def test_no_public_name_is_that_of_a_module() -> None:
    """An attribute that is a function in one program and a module in another would depend on what was imported."""
    assert not {name.split(".")[1] for name in MODULES} & set(mw.__all__)


@pytest.mark.parametrize("name", [name for name in mw.__all__ if inspect.isfunction(getattr(mw, name))])
def test_every_parameter_is_documented_where_users_look(name: str) -> None:
    """Help shows each parameter and each setting with its meaning, and the default of each setting."""
    call = getattr(mw, name)
    text = inspect.getdoc(call) or ""
    parameters = inspect.signature(call).parameters.values()
    for parameter in parameters:
        assert re.search(rf"^    (\*\*)?{parameter.name}: \w", text, re.MULTILINE), parameter.name
    assert "As in" not in text
    for parameter in parameters:
        for option_class in re.findall(r"Unpack\[(\w+)\]", str(parameter.annotation)):
            for definition in options.definitions(getattr(options, option_class)).values():
                words = " ".join(text.split())
                assert f"{definition.name}: {definition.documentation}" in words


@pytest.mark.parametrize("name", ["minwise", *MODULES])
def test_every_module_has_a_docstring_and_a_true_list_of_names(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    offered = getattr(module, "__all__", [])
    assert all(hasattr(module, one) for one in offered)


@pytest.mark.parametrize("name", mw.__all__)
def test_every_public_name_has_a_docstring(name: str) -> None:
    """And every public method and property of it too."""
    thing = getattr(mw, name)
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return
    assert thing.__doc__
    assert not thing.__doc__.startswith(f"{name}("), "a docstring that a dataclass wrote for itself"
    members = {} if inspect.isfunction(thing) else vars(thing)
    for member, value in members.items():
        if not member.startswith("_") and (callable(value) or isinstance(value, (property, classmethod))):
            assert inspect.getdoc(getattr(thing, member)), member


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_is_ours_and_a_builtin(name: str) -> None:
    """Both ``except MinwiseError`` and ``except ValueError`` catch it."""
    error = getattr(errors, name)
    assert issubclass(error, mw.MinwiseError)
    assert name in (errors.__doc__ or "")
    if error is not mw.MinwiseError:
        builtins = [base for base in error.__mro__ if base.__module__ == "builtins"]
        assert builtins[0] not in (Exception, BaseException, object)


def test_every_error_class_is_announced() -> None:
    """None is hidden in the errors module."""
    classes = {name for name, thing in vars(errors).items() if inspect.isclass(thing)}
    assert classes == set(errors.__all__)


def test_version_is_that_of_the_workspace() -> None:
    """Written in Cargo.toml and nowhere else."""
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    found = re.search(r'^\[workspace\.package\][^\[]*?^version = "([^"]+)"', manifest, re.MULTILINE | re.DOTALL)
    assert found
    assert mw.__version__ == found[1]


def fresh_python(program: str) -> str:
    """What a program prints in a Python of its own."""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def import_seconds(package: str) -> float:
    """What importing a package takes of the processor in a fresh process."""
    return float(
        fresh_python(f"import time; start = time.thread_time(); import {package}; print(time.thread_time() - start)")
    )


def test_import_is_quick() -> None:
    """The least of five, each beside an import of NumPy, without which nothing works; 1.6 to 2.1 measured."""
    times = [(import_seconds("minwise"), import_seconds("numpy")) for _ in range(5)]
    ours, numpys = (min(column) for column in zip(*times, strict=True))
    assert ours < IMPORT_AGAINST_NUMPY * numpys


def test_import_is_light() -> None:
    """Nothing that only some users need, and nothing of the command."""
    loaded = fresh_python("import sys, minwise; print(*sorted({name.partition('.')[0] for name in sys.modules}))")
    assert not set(HEAVY) & set(loaded.split())
    assert "minwise" in loaded.split()


@pytest.mark.parametrize("module", ["minwise", *MODULES])
def test_examples_in_docstrings(module: str) -> None:
    """Every example runs and prints what it says."""
    assert doctest.testmod(importlib.import_module(module)).failed == 0


def test_the_reference_package_exports_every_name_of_its_modules() -> None:
    modules = [importlib.import_module(name) for name in MODULES if name.startswith("minwise.reference.")]
    assert sorted(reference.__all__) == sorted(name for module in modules for name in module.__all__)


def test_package_is_typed() -> None:
    """The marker that lets type checkers read our annotations."""
    assert (Path(mw.__file__).parent / "py.typed").exists()
