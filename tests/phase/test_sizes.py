"""Sizes in the wrong unit are refused or remarked in a sentence that says which unit is meant."""

from dataclasses import replace

import pytest

from orienteer.errors import OrienteerError
from orienteer.phase.data import phasing_data
from orienteer.phase.settings import PhaseSettings
from orienteer.phase.sizes import size_doubts


@pytest.mark.parametrize(
    ("factor", "why", "hint"),
    [
        (1e-3, "shows nothing of a particle", r"0\.001 1/A"),
        (0.1, "shows nothing of a particle", "1/nm"),
        (10.0, "too coarse", "1/nm"),
        (1e3, "too coarse", r"0\.001 1/A"),
        (1e10, "too coarse", "1/m"),
    ],
)
def test_a_voxel_size_in_another_unit_is_refused_by_the_diameter(body, factor, why, hint) -> None:
    made = body()
    diameter_A = phasing_data(made.intensity, device="cpu").diameter_A
    other = replace(made.intensity, voxel_size=factor * made.intensity.voxel_size[0], origin=None)
    with pytest.raises(OrienteerError, match=why) as error:
        phasing_data(other, PhaseSettings(diameter_A=diameter_A), device="cpu")
    assert hint.replace("\\", "") in error.value.hint


def test_a_diameter_that_the_data_contradict_is_remarked() -> None:
    assert size_doubts(100.0, True, 110.0) == []
    assert size_doubts(100.0, True, 0.0) == []  # the data tell nothing
    (said,) = size_doubts(100.0, True, 350.0)
    assert "100 A" in said
    assert "350 A" in said
    assert "nm" in size_doubts(30.0, True, 310.0)[0]


def test_a_particle_that_no_beam_could_show_is_remarked() -> None:
    assert "1/A" in size_doubts(3e5, False, 3e5)[0]
    assert "1/A" in size_doubts(0.3, False, 0.3)[0]
    assert size_doubts(5e3, False, 5e3) == []
