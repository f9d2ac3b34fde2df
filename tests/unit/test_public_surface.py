"""Public surface of `import minwise`: names, documentation, errors and import time."""

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
MAX_RATIO_TO_NUMPY = 4
HEAVY = ("pandas", "polars", "pyspark", "click", "rich")


def test_public_names_exist_once_and_in_order() -> None:
    assert len(set(mw.__all__)) == len(mw.__all__)
    assert all(hasattr(mw, name) for name in mw.__all__)
    assert sorted(mw.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name)) == mw.__all__


def test_no_other_name_looks_public() -> None:
    packages = {name.split(".")[1] for name in MODULES}
    seen = {name for name in vars(mw) if not name.startswith("_")}
    assert seen - packages <= set(mw.__all__)
    assert set(dir(mw)) == {*mw.__all__, "__version__"}


def test_public_api_has_at_most_25_names() -> None:
    """The limit is 25 names."""
    assert len(mw.__all__) <= 25


def test_no_public_name_is_that_of_a_module() -> None:
    """Otherwise an import of the module would replace the function."""
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
def test_every_module_has_a_docstring_and_its_listed_names(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    assert all(hasattr(module, exported) for exported in getattr(module, "__all__", []))


@pytest.mark.parametrize("name", mw.__all__)
def test_every_public_name_has_a_docstring(name: str) -> None:
    """So has every public method and property of it."""
    thing = getattr(mw, name)
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return
    assert thing.__doc__
    assert not thing.__doc__.startswith(f"{name}("), "the docstring that dataclass generates"
    members = {} if inspect.isfunction(thing) else vars(thing)
    for member, value in members.items():
        if not member.startswith("_") and (callable(value) or isinstance(value, (property, classmethod))):
            assert inspect.getdoc(getattr(thing, member)), member


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_is_a_minwise_error_and_a_builtin(name: str) -> None:
    """Both ``except MinwiseError`` and ``except ValueError`` catch it."""
    error = getattr(errors, name)
    assert issubclass(error, mw.MinwiseError)
    assert name in (errors.__doc__ or "")
    if error is not mw.MinwiseError:
        builtins = [base for base in error.__mro__ if base.__module__ == "builtins"]
        assert builtins[0] not in (Exception, BaseException, object)


def test_every_error_class_is_exported() -> None:
    classes = {name for name, thing in vars(errors).items() if inspect.isclass(thing)}
    assert classes == set(errors.__all__)


def test_version_is_that_of_the_workspace() -> None:
    """Only Cargo.toml has it."""
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    found = re.search(r'^\[workspace\.package\][^\[]*?^version = "([^"]+)"', manifest, re.MULTILINE | re.DOTALL)
    assert found
    assert mw.__version__ == found[1]


def fresh_python(program: str) -> str:
    """Return the output of a program in a new Python process."""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def import_seconds(package: str) -> float:
    """Return the processor time of importing a package in a new process."""
    return float(
        fresh_python(f"import time; start = time.thread_time(); import {package}; print(time.thread_time() - start)")
    )


def test_import_takes_little_longer_than_that_of_numpy() -> None:
    """The minimum of five, each next to an import of NumPy, which is required; the measured ratio is 1.6 to 2.1."""
    times = [(import_seconds("minwise"), import_seconds("numpy")) for _ in range(5)]
    minwise, numpy = (min(column) for column in zip(*times, strict=True))
    assert minwise < MAX_RATIO_TO_NUMPY * numpy


def test_import_loads_no_optional_package() -> None:
    """Neither those that only some users need nor those of the command."""
    loaded = fresh_python("import sys, minwise; print(*sorted({name.partition('.')[0] for name in sys.modules}))")
    assert not set(HEAVY) & set(loaded.split())
    assert "minwise" in loaded.split()


@pytest.mark.parametrize("module", ["minwise", *MODULES])
def test_examples_in_docstrings_are_correct(module: str) -> None:
    assert doctest.testmod(importlib.import_module(module)).failed == 0


def test_the_reference_package_exports_every_name_of_its_modules() -> None:
    modules = [importlib.import_module(name) for name in MODULES if name.startswith("minwise.reference.")]
    assert sorted(reference.__all__) == sorted(name for module in modules for name in module.__all__)


def test_package_is_marked_as_typed() -> None:
    """Type checkers read the annotations only with this file."""
    assert (Path(mw.__file__).parent / "py.typed").exists()
