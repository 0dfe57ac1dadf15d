"""Errors: one clear sentence, also when they have travelled from one rank to another."""

import ast
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import orienteer
from orienteer.errors import DeviceError, FileError, GeometryMismatch, OrienteerError, SettingsError


@pytest.mark.parametrize("kind", [OrienteerError, SettingsError, GeometryMismatch, DeviceError])
def test_errors_travel(kind: type[OrienteerError]) -> None:
    arrived = pickle.loads(pickle.dumps(kind("something is wrong.", "Mend it.")))
    assert type(arrived) is kind
    assert str(arrived) == "something is wrong.\nMend it."


def test_an_error_about_a_file_travels() -> None:
    arrived = pickle.loads(pickle.dumps(FileError("hits.h5", "is damaged.", "Copy it again.")))
    assert (arrived.path, arrived.reason, arrived.hint) == ("hits.h5", "is damaged.", "Copy it again.")
    assert str(arrived) == "hits.h5: is damaged.\nCopy it again."


PACKAGE = Path(orienteer.__file__).parent
KINDS = ("OrienteerError", "SettingsError", "DeviceError", "GeometryMismatch", "FileError", "CampaignError")
# What users meet by what they type; the rest is about the content of files, which is given advice where it is
# read, or about arguments of functions, where what is expected is a part of the sentence.
BEFORE_USERS = (
    "campaign",
    "cli",
    "live",
    "online",
    "reconstruction",
    "report",
    "scaling",
    "settings",
    "simulation",
)


def calls() -> Iterator[tuple[Path, ast.Call, str]]:
    """Every error that is made, with the file and the name of its kind."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KINDS:
                yield path.relative_to(PACKAGE), node, node.func.id


def test_errors_that_users_meet_say_what_to_do_next() -> None:
    silent = [
        f"{path}:{call.lineno}"
        for path, call, kind in calls()
        if (path.parts[0] in BEFORE_USERS or kind == "SettingsError")
        and not any(isinstance(argument, ast.Starred) for argument in call.args)
        and len(call.args) + len(call.keywords) < (3 if kind == "FileError" else 2)
    ]
    assert not silent


def test_what_is_to_be_installed_comes_from_where_the_sources_are() -> None:
    """No index of packages is sure to have it; one function tells how, for any shell."""
    for path in PACKAGE.rglob("*.py"):
        assert not re.search(r"pip install [^\n]*orienteer", path.read_text()), path
