"""The pictures of the architecture page are those that its tool draws from the sources now."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "architecture_pictures.py"


@pytest.fixture(scope="module")
def tool() -> dict[str, Any]:
    return runpy.run_path(str(TOOL))


@pytest.mark.parametrize("name", ["architecture.svg", "imports.svg"])
def test_a_picture_is_as_the_sources_are(name: str, tool: dict[str, Any]) -> None:
    kept = (tool["PICTURES"] / name).read_text()
    assert kept == tool["PICTURES_OF"][name](), "run: python tools/architecture_pictures.py"


def test_every_folder_of_the_flow_is_there(tool: dict[str, Any]) -> None:
    named = {part.strip(" /") for box in tool["BOXES"].values() for part in box[0].split(",") if "/" in part}
    assert named <= set(tool["folders"]())


def test_shots_go_from_the_live_run_to_the_campaign_and_from_there_to_the_page(tool: dict[str, Any]) -> None:
    ways = {(a, b) for a, _, b, *_ in tool["ARROWS"]}
    assert {("live", "campaign"), ("campaign", "dashboard"), ("run", "dashboard")} <= ways
    assert not {("online", "campaign"), ("validate", "cli")} & ways


def test_words_of_the_flow_are_large_enough_on_the_page(tool: dict[str, Any]) -> None:
    sizes = [float(size) for size in re.findall(r"font-size='([\d.]+)'", tool["flow"]())]
    assert min(sizes) >= 14


def test_an_import_inside_of_a_function_counts(tool: dict[str, Any], tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("import numpy\ndef f():\n    from orienteer.volume.volume import Volume\n")
    assert tool["imports_of"](module) == {"volume"}


@pytest.mark.parametrize("page", ["architecture.md", "contracts.md"])
def test_what_the_page_names_is_where_it_says(page: str, tool: dict[str, Any]) -> None:
    text = (tool["PAGE"].parent / page).read_text()
    files = {str(path.relative_to(tool["ROOT"])): path for path in (tool["ROOT"] / "src").rglob("*.*")}
    files |= {str(path.relative_to(tool["ROOT"])): path for path in (tool["ROOT"] / "tests").glob("*.py")}
    for name, attribute in re.findall(r"`([\w/]+\.(?:py|js))(?::(\w+))?", text):
        found = [path for known, path in files.items() if f"/{known}".endswith(f"/{name}")]
        assert found, f"{page} names {name}, which is not there"
        is_defined = [re.search(rf"(def|class) {attribute}\b", path.read_text()) for path in found]
        assert not attribute or any(is_defined), f"{page} looks for {attribute} in {name}"
