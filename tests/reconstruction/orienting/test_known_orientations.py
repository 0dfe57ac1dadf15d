"""Orientations that are given: read by event id, kept as they are, and never taken unasked."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.mtip.mtip import Mtip
from orienteer.mtip.settings import MtipSettings
from orienteer.orientation.distance import angular_distance_deg
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.orienting.known_poses import KnownPoses
from orienteer.reconstruction.settings import EmcSettings
from orienteer.reconstruction.states.splitting import split_state
from orienteer.reconstruction.workspace import Workspace

COLUMN = {"known_orientations_column": "truth_orientation"}


@pytest.fixture(scope="module")
def data(simulated: Any, tiny: Any) -> Any:
    return simulated(tiny.particle, 14, 65.0, frames=80, photons_per_frame=1000)


def write_table(path: Path, event_id: np.ndarray, quaternion: np.ndarray) -> Path:
    with h5py.File(path, "w") as file:
        file["event_id"], file["quaternion"] = event_id, quaternion
    return path


def truth(data: Any) -> np.ndarray:
    return np.asarray(data.patterns.columns["truth_orientation"], dtype=np.float64)


@pytest.mark.parametrize("method", [(Emc, EmcSettings), (Mtip, MtipSettings)])
def test_with_known_orientations_the_truth_is_merged_where_it_lies(data: Any, method: Any) -> None:
    """Nothing needs to be turned onto the truth: the frame of reference is that of the orientations."""
    kind, section = method
    run = kind(data.source(), section(diameter_A=200.0, level=4, **COLUMN), seed=1, device="cpu")
    for _ in range(4):
        run.step()
    found, true = run.volumes()[0].values, data.truth_on(run)
    n = len(found)
    axis = np.arange(n) - n // 2
    radius = np.sqrt(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2)
    correlations = []
    for shell in range(3, 10):
        own = (np.rint(radius) == shell) & np.isfinite(found)
        correlations.append(np.corrcoef(found[own], true[own])[0, 1])
    assert np.mean(correlations) > 0.8
    merged = ~run.sentinel
    np.testing.assert_allclose(run.orientations()["quaternion"][merged], truth(data)[merged], atol=1e-12)
    assert run.remarks[0].startswith(
        "The orientations of all 80 frames were given, not found: known_orientations"
    )


def test_a_finished_run_has_kept_them(data: Any) -> None:
    emc = data.emc(level=4, **COLUMN)
    steps = []
    while not emc.finished:
        steps.append(emc.step())
    assert len(steps) < 25  # there is nothing to anneal
    merged = ~emc.sentinel
    np.testing.assert_allclose(emc.orientations()["quaternion"][merged], truth(data)[merged], atol=1e-12)
    assert emc.orientations()["perplexity"][merged] == pytest.approx(1.0)
    assert data.aligned(emc, last_shell=12).shells.correlation[2:12].mean() > 0.9


def test_where_some_are_known_the_others_are_searched_for_in_their_frame(data: Any, tmp_path: Path) -> None:
    event_id, true = np.asarray(data.patterns.event_id), truth(data)
    some = np.arange(0, 80, 2)
    shuffled = np.random.default_rng(1).permutation(some)
    file = write_table(tmp_path / "known.h5", event_id[shuffled], true[shuffled])
    emc = data.emc(level=4, known_orientations_file=str(file))
    while not emc.finished:
        emc.step()
    assert emc.remarks[0].startswith("The orientations of 40 of 80 frames were given, not found")
    found = emc.orientations()["quaternion"]
    known = np.isin(np.arange(80), some) & ~emc.sentinel
    np.testing.assert_allclose(found[known], true[known], atol=1e-12)
    others = ~np.isin(np.arange(80), some) & ~emc.sentinel
    # Such flat patterns look the same after half a turn about the beam.
    assert np.median(angular_distance_deg(found[others], true[others], flat_ewald=True)) < 12


def test_frames_of_known_pose_still_choose_their_state(data: Any) -> None:
    emc = data.emc(level=3, models=2, fluence="estimate", **COLUMN)
    emc.step()
    split_state(emc)
    step = emc.step()
    probability = emc.orientations()["state_probability"]
    merged = ~emc.sentinel
    assert probability[merged].sum(axis=1) == pytest.approx(1.0)
    assert 0 < (probability[merged, 0] > 0.5).mean() < 1
    np.testing.assert_allclose(emc.orientations()["quaternion"][merged], truth(data)[merged], atol=1e-12)
    assert sum(state["occupancy"] for state in step.states) == pytest.approx(1.0)


def test_a_state_is_as_frequent_as_its_frames_wherever_a_search_would_have_put_those_of_known_pose(
    data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    masses: list[np.ndarray] = []
    monkeypatch.setattr(Workspace, "update_prior", lambda work, mass: masses.append(mass))
    # Known to be somewhere else, so that a search puts them elsewhere, and into other states.
    event_id, wrong = np.asarray(data.patterns.event_id), np.roll(truth(data), 1, axis=0)
    file = write_table(tmp_path / "known.h5", event_id[::2], wrong[::2])
    emc = data.emc(level=3, models=2, fluence="estimate", known_orientations_file=str(file))
    emc.step()
    split_state(emc)
    emc.step()
    states = np.split(masses[-1], 2)
    merged = ~emc.sentinel
    expected = emc.orientations()["state_probability"][merged].sum(axis=0)
    assert [state.sum() for state in states] == pytest.approx(expected, rel=1e-3)


def test_evidence_and_entropy_are_told_apart_where_nothing_is_searched_for(
    data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Any] = []
    step = KnownPoses.step

    def noted(*given: Any) -> Any:
        found.append(step(*given)[0])
        return step(*given)

    monkeypatch.setattr(KnownPoses, "step", noted)
    data.emc(level=3, **COLUMN).step()
    for posterior in found:
        assert posterior.entropy == pytest.approx(0.0)
        assert posterior.log_evidence == pytest.approx(posterior.best_score, rel=1e-5)


def test_a_state_goes_on_bit_for_bit(data: Any) -> None:
    straight = data.emc(level=3, **COLUMN)
    straight.step()
    state = {name: np.copy(v) if isinstance(v, np.ndarray) else v for name, v in straight.state().items()}
    resumed = data.emc(level=3, **COLUMN)
    resumed.restore(state)
    assert straight.step().log_likelihood == resumed.step().log_likelihood
    assert np.array_equal(straight.models, resumed.models)


def test_what_cannot_be_orientations_is_refused_with_what_to_do(data: Any, tmp_path: Path) -> None:
    event_id, true = np.asarray(data.patterns.event_id), truth(data)
    far = write_table(tmp_path / "far.h5", event_id + np.uint64(10**9), true)
    long = write_table(tmp_path / "long.h5", event_id, 2 * true)
    twice = write_table(tmp_path / "twice.h5", np.zeros(80, np.uint64), true)
    below = write_table(tmp_path / "below.h5", np.arange(80) - 5, true)
    wrong = [
        ({"known_orientations_file": str(below)}, "below.h5: an event id is -5"),
        ({"known_orientations_file": str(far)}, "none of the 80 frames"),
        ({"known_orientations_file": str(long)}, "unit quaternions"),
        ({"known_orientations_file": str(twice)}, "twice"),
        ({"known_orientations_file": str(tmp_path / "no.h5")}, "no.h5"),
        ({"known_orientations_column": "truth_fluence"}, "no quaternions"),
        ({"known_orientations_column": "guess"}, "no column 'guess'"),
        ({"known_orientations_file": str(far), **COLUMN}, "named twice"),
    ]
    for settings, words in wrong:
        with pytest.raises(OrienteerError, match=words):
            data.emc(level=3, **settings)
