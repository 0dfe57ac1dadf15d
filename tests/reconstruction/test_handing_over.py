"""A map that is handed over is the same map on other voxels, and its halves stay apart."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from orienteer.compare.shells import shell_correlation
from orienteer.reconstruction.handing_over import LearntMap, begin_from


@pytest.fixture
def begun(tiny: Any) -> Any:
    """A reconstruction after three iterations."""
    emc = tiny.emc()
    for _ in range(3):
        emc.step()
    return emc


def test_on_the_same_voxels_nothing_changes(tiny: Any, begun: Any) -> None:
    other = tiny.emc(seed=5)
    begin_from(other, LearntMap.from_state(LearntMap.of(begun).state()))
    assert np.allclose(other.models, begun.models, atol=1e-5)
    assert np.array_equal(other.noise.dispersion, begun.noise.dispersion)
    assert other.annealing.target == pytest.approx(8)


def test_the_halves_stay_apart(tiny: Any, begun: Any) -> None:
    other = tiny.emc(seed=5)
    begin_from(other, LearntMap.of(begun))
    between = np.abs(other.models[0] - other.models[1]).max()
    assert between == pytest.approx(np.abs(begun.models[0] - begun.models[1]).max(), rel=1e-3)
    assert between > 0.01


def test_on_other_voxels_the_intensity_is_the_same(tiny: Any, begun: Any) -> None:
    other = tiny.emc(seed=5, diameter_A=220.0)
    begin_from(other, LearntMap.of(begun))
    assert other.work.stage.voxel_inv_A < begun.work.stage.voxel_inv_A
    again = tiny.emc(seed=6)
    begin_from(again, LearntMap.of(other))
    found, wanted = again.volumes()[0].values, begun.volumes()[0].values
    correlation = shell_correlation(np.nan_to_num(found), np.nan_to_num(wanted)).correlation
    assert np.nanmin(correlation[2:10]) > 0.95


def test_without_halves_the_model_of_all_frames_is_taken(tiny: Any, begun: Any) -> None:
    whole = tiny.emc(seed=5, halves=False)
    begin_from(whole, LearntMap.of(begun))
    assert np.allclose(whole.models[0], begun.full, atol=1e-5)
    back = tiny.emc(seed=5)
    begin_from(back, LearntMap.of(whole))
    assert np.array_equal(back.models[0], back.models[1])


def test_a_run_from_a_map_of_found_symmetry_resumes_bit_for_bit(tiny: Any) -> None:
    """Frames keep all equivalent poses at first.  Halves that begin alike lose agreement: quick steps."""
    straight, resumed = tiny.emc(), tiny.emc()
    begin_from(straight, replace(LearntMap.of(tiny.emc()), symmetry="I"))
    resumed.restore(straight.state())
    for _ in range(3):
        assert resumed.step().inverse_temperature == straight.step().inverse_temperature
    assert resumed.annealing.target == straight.annealing.target
    assert np.array_equal(resumed.models, straight.models)
