"""What is to be installed is told in one way, and exists."""

import re
import tomllib
from pathlib import Path

import orienteer
from orienteer.cli import doctor
from orienteer.compute.extras import how_to_install

PACKAGE = Path(orienteer.__file__).parent
PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_every_extra_that_is_named_exists() -> None:
    known = set(tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"])
    sources = [path.read_text() for path in PACKAGE.rglob("*.py") if path.name != "extras.py"]
    named = {extra for text in sources for extra in re.findall(r"how_to_install\(['\"]([\w-]+)", text)}
    assert {"campaign", "files", "gpu", "live", "mpi", "postgres", "web"} <= named <= known


def test_the_doctor_tells_the_same_as_errors() -> None:
    missing = doctor._optional("web", "no_such_module", "the page", "web")
    assert missing.how == how_to_install("web") == "pip install '.[web]' in the folder of the sources"
