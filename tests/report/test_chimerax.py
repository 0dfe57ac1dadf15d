"""The script for ChimeraX opens what is there, shows the density, and hides the rest."""

import re
from pathlib import Path

import pytest

from orienteer.report.chimerax import Map, script
from orienteer.report.surface import surface_level
from orienteer.volume.opening import open_volume


def opened(text: str) -> dict[int, str]:
    return {int(number): file for file, number in re.findall(r'^open "([^"]+)" id (\d+)', text, re.MULTILINE)}


def test_every_map_is_opened_from_beside_the_script(reported_once: Path) -> None:
    text = (reported_once / "open_in_chimerax.cxc").read_text()
    maps = opened(text)
    assert maps == {
        1: "density.mrc",
        2: "validation/density_half_1.mrc",
        3: "validation/density_half_2.mrc",
        4: "validation/mask.mrc",
    }
    for file in maps.values():
        assert (reported_once / file).is_file()
    assert re.findall(r"^hide #(\d+) models$", text, re.MULTILINE) == ["2", "3", "4"]
    level = float(re.findall(r"^volume #1 .*level (\S+)", text, re.MULTILINE)[0])
    assert level == pytest.approx(surface_level(open_volume(reported_once / "density.mrc").values), rel=1e-5)


def test_a_scale_bar_is_round_and_comes_last() -> None:
    lines = script([Map("density.mrc", "density", 0.25, "#7a9fd4", shown=True)], 330.0).splitlines()
    assert lines[-2] == "scalebar 50"
    assert '"50 Å"' in lines[-1]
    assert not any(line.startswith("hide") for line in lines)
    assert "volume #1 style surface step 1 level 0.25 color #7a9fd4" in lines
