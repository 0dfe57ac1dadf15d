"""Curves and kinds of hits are told apart by all eyes, in both themes."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import orienteer.dashboard

STYLE = (Path(orienteer.dashboard.__file__).parent / "page" / "style.css").read_text()
# Light as those see it who lack one kind of cone, in linear red, green and blue (Machado et al. 2009).
EYES = {
    "all cones": np.eye(3),
    "no long": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no middle": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "no short": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
TO_XYZ = np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])
THEMES = re.findall(r"--curve-1: [^}]*?--curve-6: #\w+;", STYLE)


def linear(colour: str) -> np.ndarray:
    """Red, green and blue of a colour such as #0072b2, proportional to light."""
    part = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def lightness_and_hue(colour: str, eyes: str) -> np.ndarray:
    """L*, a*, b* of a colour as some eyes see it; differences of 2 are just seen."""
    xyz = TO_XYZ @ np.clip(EYES[eyes] @ linear(colour), 0, 1) / (TO_XYZ @ np.ones(3))
    root = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("theme", range(3))
def test_no_two_curves_look_alike(theme: int, eyes: str) -> None:
    colours = re.findall(r"#\w{6}", THEMES[theme])
    assert len(colours) == 6
    seen = [lightness_and_hue(colour, eyes) for colour in colours]
    for one, two in itertools.combinations(range(6), 2):
        assert np.linalg.norm(seen[one] - seen[two]) > 10, (colours[one], colours[two])


def test_the_dark_theme_is_the_same_however_it_was_chosen() -> None:
    assert len(THEMES) == 3
    assert THEMES[1] == THEMES[2] != THEMES[0]


def test_colours_stand_out_from_the_cards_they_are_drawn_on() -> None:
    papers = re.findall(r"--card: (#\w+);", STYLE)
    for paper, theme in zip(papers, THEMES, strict=True):
        ground = (
            linear(paper if len(paper) == 7 else "#" + "".join(2 * part for part in paper[1:])) @ TO_XYZ[1]
        )
        for colour in re.findall(r"#\w{6}", theme):
            light = linear(colour) @ TO_XYZ[1]
            contrast = (max(light, ground) + 0.05) / (min(light, ground) + 0.05)
            assert contrast > 3, (colour, paper)
