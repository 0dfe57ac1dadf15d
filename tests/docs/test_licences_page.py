"""Every dependency is on the page of licences, with the kind of licence that its own metadata tell."""

import importlib.util
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    """The script that writes the page."""
    spec = importlib.util.spec_from_file_location("licences_page", ROOT / "tools" / "licences_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(writer: ModuleType) -> dict[str, str]:
    return dict(re.findall(r"^\| (\S+) \| (.+) \|$", writer.PAGE.read_text(), re.MULTILINE))


def test_every_dependency_has_its_licence_on_the_page(writer: ModuleType) -> None:
    names = {name for listed in writer.dependencies().values() for name in listed}
    missing = {name for name in names if writer.family(rows(writer).get(name, "")) == set()}
    assert not missing, f"run: python tools/licences_page.py ({missing})"


def test_licences_are_those_of_what_is_installed(writer: ModuleType) -> None:
    for name, words in rows(writer).items():
        try:
            version(name)
        except PackageNotFoundError:
            continue
        # Versions word their licence differently, so its kind is compared.
        told = writer.licence(name)
        assert writer.family(told) & writer.family(words) or told == words, f"{name}: {told}, not {words}"


def test_the_citation_has_the_version_and_licence_of_the_package() -> None:
    import orienteer

    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {orienteer.__version__}\n" in citation
    assert "\nlicense: BSD-3-Clause\n" in citation
