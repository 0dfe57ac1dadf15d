"""A symmetry that nobody gave is found where there is one, and taken where unseen frames ask for it."""

from typing import Any

import numpy as np
import pytest

from orienteer.compare.shells import shell_index
from orienteer.compare.turning import rotate_volume
from orienteer.orientation.quaternion import random_uniform
from orienteer.particle.bodies import Part, Sum, sphere
from orienteer.particle.named_bodies import random_blobs, virus
from orienteer.reconstruction.found_symmetry import FoundSymmetry, look_for_symmetry, seeks_symmetry
from orienteer.reconstruction.model.relative_intensity import half_correlation, random_start

DIAMETER_A = 300.0
SETTINGS: dict[str, Any] = {"diameter_A": DIAMETER_A, "sentinels": 0.3, "reject_junk": False}


@pytest.fixture(scope="module")
def frames_of_a_virus(simulated: Any) -> Any:
    return simulated(virus(DIAMETER_A), 28, 40.0, frames=300, photons_per_frame=1500)


def settled(data: Any, noise: float, **settings: Any) -> Any:
    """A run at the end of its first stage: models turned somewhere, those of the halves with noise."""
    emc = data.emc(**{**SETTINGS, **settings})
    n = emc.work.edge_voxels
    truth, index = data.truth_on(emc), shell_index(n)
    smooth = emc.profile.at_voxels(n, emc.work.stage.voxel_inv_A)
    ratio = truth / smooth
    level = ratio[(index > 0) & (index < 5)].mean()  # where the particle is round
    relative = np.where(index >= 0, ratio / level, 1.0).astype(np.float32)
    turned = np.nan_to_num(rotate_volume(relative, random_uniform(1, 11)[0]), nan=1.0)
    models = []
    for half in range(emc.n_halves):
        own = random_start(n, half, 3.0) - 1
        # Most photons are on the inner shells, where there is little noise.
        own *= noise * relative.std() / own.std() * (index > 5)
        models.append(np.maximum(turned + own, 0.01)[None])
    emc.models = np.stack(models).astype(np.float32)
    emc.full = emc.models.mean(axis=0)
    emc.half_correlation = half_correlation(emc.models[0, 0], emc.models[-1, 0], np.ones_like(models[0][0]))
    emc.half_correlation[np.isnan(emc.half_correlation)] = 0
    return emc


def nearness_of_speckles(data: Any, emc: Any) -> float:
    """Correlation with the truth beyond the inner shells, on which a virus is round."""
    return float(data.aligned(emc, last_shell=20).shells.mean(np.arange(6, 21)))


def test_the_symmetry_of_a_virus_is_found_and_taken(frames_of_a_virus: Any) -> None:
    emc = settled(frames_of_a_virus, 0.4)
    assert seeks_symmetry(emc)
    found = look_for_symmetry(emc)
    assert found.axes is not None
    assert str(found.axes.group) == "I"
    assert found.words.startswith(
        "The intensity has the symmetry I: with it frames that no model has seen are"
    )
    before, nearness = len(emc.work.poses), nearness_of_speckles(frames_of_a_virus, emc)
    emc._begin_symmetric(found.axes)
    assert len(emc.work.poses) == before / 60
    assert not seeks_symmetry(emc)
    assert nearness_of_speckles(frames_of_a_virus, emc) > nearness + 0.01
    step = emc.step()
    assert step.symmetry == "I"
    assert step.n_rotations == before / 60
    assert step.half_correlation > 0.9


def test_an_object_without_symmetry_is_left_as_it_is(simulated: Any) -> None:
    data = simulated(random_blobs(DIAMETER_A, 20, 5), 28, 40.0, frames=300, photons_per_frame=1500)
    emc = settled(data, 0.1)
    assert not seeks_symmetry(emc)
    assert look_for_symmetry(emc).axes is None


def test_a_virus_with_one_corner_unlike_the_others_is_not_made_symmetric(simulated: Any) -> None:
    """Pseudo-symmetry: frames that show the one corner are less likely where all are alike."""
    corner = np.array([0.0, 1.0, (1 + 5**0.5) / 2])
    corner *= 0.3 * DIAMETER_A / np.linalg.norm(corner)
    portal = Sum((Part(virus(DIAMETER_A)), Part(sphere(0.2 * DIAMETER_A, 0.6), 1.0, tuple(corner.tolist()))))
    data = simulated(portal, 28, 40.0, frames=300, photons_per_frame=3000)
    emc = settled(data, 0.05)
    assert not seeks_symmetry(emc)  # since it is not even nearly round
    found = look_for_symmetry(emc)
    assert found.axes is None
    assert "resembles one of symmetry" in found.words
    assert "are likelier by -" in found.words


@pytest.mark.parametrize(
    "settings", [{"symmetry": "C1"}, {"symmetry": "I"}, {"models": 2}, {"halves": False}, {"sentinels": 0.0}]
)
def test_it_is_looked_for_in_blind_runs_of_one_state_that_were_given_none(
    frames_of_a_virus: Any, settings: dict[str, Any]
) -> None:
    assert not seeks_symmetry(settled(frames_of_a_virus, 0.3, **settings))


def test_shells_that_halves_do_not_share_show_no_symmetry(frames_of_a_virus: Any) -> None:
    emc = settled(frames_of_a_virus, 0.3)
    emc.half_correlation[:] = 0.1
    assert not seeks_symmetry(emc)
    assert look_for_symmetry(emc) == FoundSymmetry()


def test_a_nearly_round_particle_that_shows_no_symmetry_gets_other_starts(
    frames_of_a_virus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orienteer.reconstruction.emc.look_for_symmetry", lambda emc: FoundSymmetry())
    emc = settled(frames_of_a_virus, 0.3)
    assert emc.course.n_starts == 1
    emc._turn("next stage")
    assert (emc.course.n_starts, emc.course.start, emc.course.stage) == (4, 1, 0)
    assert len(emc.candidates) == 1
    # Whoever says how many starts there are gets as many.
    emc = settled(frames_of_a_virus, 0.3, starts=1)
    emc._turn("next stage")
    assert (emc.course.n_starts, emc.course.stage) == (1, 1)


def test_a_start_that_shows_the_symmetry_is_the_last(frames_of_a_virus: Any) -> None:
    emc = settled(frames_of_a_virus, 0.3)
    emc.course.n_starts, emc.course.start, emc.candidates = 4, 1, [{"log_likelihood": 0.0}]
    assert emc._turn("next start").startswith("The intensity has the symmetry I")
    assert (emc.course.start, emc.course.stage, emc.candidates) == (1, 0, [])
    assert emc.course.has_start


def test_a_checkpoint_keeps_what_was_found(frames_of_a_virus: Any) -> None:
    emc = settled(frames_of_a_virus, 0.3)
    emc._begin_symmetric(look_for_symmetry(emc).axes)
    emc.step()
    state = emc.state()
    again = frames_of_a_virus.emc(**SETTINGS)
    again.restore(state)
    assert again.group.name == "I"
    assert [stage.in_two_passes for stage in again.stages] == [stage.in_two_passes for stage in emc.stages]
    ours, theirs = emc.step(), again.step()
    assert ours.log_likelihood == theirs.log_likelihood
    np.testing.assert_array_equal(emc.models, again.models)


@pytest.mark.slow
def test_a_blind_run_finds_it_by_itself(frames_of_a_virus: Any) -> None:
    """From a random start to the end, with nothing but the frames."""
    emc = frames_of_a_virus.emc(diameter_A=DIAMETER_A)
    notes = []
    while not emc.finished:
        notes.append(emc.step().note)
    assert any(note.startswith("The intensity has the symmetry I") for note in notes)
    assert nearness_of_speckles(frames_of_a_virus, emc) > 0.9
