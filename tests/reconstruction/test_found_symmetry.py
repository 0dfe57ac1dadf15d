"""A symmetry that nobody gave is found where there is one, and taken where unseen frames ask for it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.spatial import KDTree

from orienteer.compare.shells import shell_index
from orienteer.compare.symmetry_axes import SymmetryAxes, find_axes
from orienteer.compare.turning import rotate_volume
from orienteer.compute.arrays import to_numpy
from orienteer.orientation.point_group import PointGroup
from orienteer.orientation.quaternion import compose, random_uniform, to_matrix
from orienteer.particle.bodies import Part, Sum, sphere
from orienteer.particle.named_bodies import random_blobs, virus
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.found_symmetry import (
    look_for_symmetry,
    seeks_symmetry,
    settle_symmetry,
    try_symmetry,
)
from orienteer.reconstruction.handing_over import LearntMap, begin_from
from orienteer.reconstruction.model.relative_intensity import (
    half_correlation,
    inverse_start,
    random_start,
)
from orienteer.reconstruction.orienting.temperature import LAST_PERPLEXITY
from orienteer.reconstruction.settings import EmcSettings
from orienteer.slicing.trilinear import slice_volume

DIAMETER_A = 300.0
SETTINGS: dict[str, Any] = {"diameter_A": DIAMETER_A, "sentinels": 0.3, "reject_junk": False}


@pytest.fixture(scope="module", autouse=True)
def axes_found_once() -> Iterator[None]:
    """In the same intensity the axes of a group are searched for once, for all tests."""
    found: dict[tuple[Any, ...], SymmetryAxes] = {}

    def find_once(values: Any, group: PointGroup, **shells: int) -> SymmetryAxes:
        key = (values.shape, values.tobytes(), group.name, *sorted(shells.items()))
        if key not in found:
            found[key] = find_axes(values, group, **shells)
        return found[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("orienteer.reconstruction.found_symmetry.find_axes", find_once)
        yield


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
    emc.noise.dispersion = np.full(len(emc.half_correlation), 0.03)  # as such models learn it
    emc.half_correlation = half_correlation(emc.models[0, 0], emc.models[-1, 0], np.ones_like(models[0][0]))
    emc.half_correlation[np.isnan(emc.half_correlation)] = 0
    return emc


def nearness_of_speckles(data: Any, emc: Any) -> float:
    """Correlation with the truth beyond the inner shells, on which a virus is round."""
    return float(data.aligned(emc, last_shell=20).shells.mean(np.arange(6, 21)))


def tried(data: Any, noise: float) -> Any:
    """A run with symmetric models on trial, whose first stage has settled before."""
    emc = settled(data, noise)
    words = emc.take_turn("next stage")
    assert words == "The intensity looks the same after the rotations of I: is that its symmetry?"
    return emc


def settle(emc: Any, steps: int = 4) -> None:
    """So many iterations with what is on trial."""
    for _ in range(steps):
        emc.step()


def test_the_symmetry_of_a_virus_is_found_tried_and_kept(frames_of_a_virus: Any) -> None:
    emc = settled(frames_of_a_virus, 0.3)
    assert seeks_symmetry(emc)
    nearness, poses = nearness_of_speckles(frames_of_a_virus, emc), len(emc.work.poses)
    emc = tried(frames_of_a_virus, 0.3)
    assert (emc.group.name, emc.course.stage, emc.course.tries_symmetry) == ("I", 0, True)
    # What was noise has become less, and the turned intensity lies as the group has its axes.
    assert nearness_of_speckles(frames_of_a_virus, emc) > nearness + 0.01
    step = emc.step()
    assert (step.symmetry, step.n_rotations) == ("I", poses)
    assert step.half_correlation > 0.9
    settle(emc)
    assert emc.take_turn("next stage").startswith(
        "The intensity has the symmetry I: with it, frames that no model has seen gain"
    )
    assert (emc.group.name, emc.course.stage, emc.course.tries_symmetry) == ("I", 1, False)
    assert emc.candidates == []
    assert not seeks_symmetry(emc)
    # Likenesses lie between the poses, of which no stage needs more.
    assert len(emc.work.poses) == poses


def test_no_pose_of_the_grid_is_like_another_when_a_symmetry_was_found(frames_of_a_virus: Any) -> None:
    emc = settled(frames_of_a_virus, 0.3)
    whole = emc.work.quaternions
    try_symmetry(emc)
    found = emc.work.quaternions
    assert found.shape == whole.shape
    orientations = random_uniform(500, 5)

    def rms_to_nearest_deg(poses: Any) -> float:
        alike = compose(poses[:, None], emc.group.quaternions).reshape(-1, 4)
        chords, _ = KDTree(np.concatenate([alike, -alike])).query(orientations)
        return float(np.sqrt(np.mean(np.degrees(4 * np.arcsin(chords / 2)) ** 2)))

    assert rms_to_nearest_deg(found) < 0.35 * rms_to_nearest_deg(whole)


def test_likenesses_are_spread_as_they_were_and_then_narrow(frames_of_a_virus: Any) -> None:
    emc = settled(frames_of_a_virus, 0.3)
    try_symmetry(emc)
    assert emc.annealing.target == 60 * LAST_PERPLEXITY
    emc.enter(1)
    assert emc.annealing.target == LAST_PERPLEXITY


def test_a_voxel_and_its_likenesses_have_one_prior_together(frames_of_a_virus: Any) -> None:
    emc = settled(frames_of_a_virus, 0.3)
    alone = emc.prior_photons
    try_symmetry(emc)
    emc.table.perplexity *= 60  # as many poses around each likeness
    assert emc.prior_photons == pytest.approx(alone / 60)


def test_an_object_without_symmetry_is_left_as_it_is(simulated: Any) -> None:
    data = simulated(random_blobs(DIAMETER_A, 20, 5), 28, 40.0, frames=300, photons_per_frame=1500)
    emc = settled(data, 0.1)
    assert not seeks_symmetry(emc)
    assert look_for_symmetry(emc) is None
    assert emc.take_turn("next stage") == ""
    assert (emc.course.stage, emc.course.n_starts) == (1, 1)


def test_a_virus_with_one_corner_unlike_the_others_is_not_made_symmetric(
    simulated: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pseudo-symmetry: frames that show the one corner are less likely where all are alike."""
    corner = np.array([0.0, 1.0, (1 + 5**0.5) / 2])
    corner *= 0.3 * DIAMETER_A / np.linalg.norm(corner)
    portal = Sum((Part(virus(DIAMETER_A)), Part(sphere(0.2 * DIAMETER_A, 0.6), 1.0, tuple(corner.tolist()))))
    data = simulated(portal, 28, 40.0, frames=300, photons_per_frame=3000)
    emc = settled(data, 0.05)
    assert not seeks_symmetry(emc)  # since it is not even nearly round
    monkeypatch.setattr("orienteer.reconstruction.model.quadrupole._ROUND", 2.0)
    models = emc.models.copy()
    try_symmetry(emc)
    assert emc.group.name == "I"
    settle(emc)
    is_kept, words = settle_symmetry(emc)
    assert not is_kept
    assert "but does not have it: with it, frames that no model has seen gain -" in words
    assert emc.group.name == "C1"
    np.testing.assert_array_equal(emc.models, models)


@pytest.mark.parametrize(
    "settings", [{"symmetry": "C1"}, {"symmetry": "I"}, {"models": 2}, {"halves": False}, {"sentinels": 0.0}]
)
def test_it_is_looked_for_in_blind_runs_of_one_state_that_were_given_none(
    frames_of_a_virus: Any, settings: dict[str, Any]
) -> None:
    assert not seeks_symmetry(settled(frames_of_a_virus, 0.3, **settings))


def test_names_are_read_in_either_case() -> None:
    assert EmcSettings(symmetry="Auto").symmetry == EmcSettings().symmetry == "auto"
    assert EmcSettings(symmetry="Auto").given_group.name == "C1"
    assert EmcSettings(symmetry="i").given_group.name == "I"


def test_shells_that_halves_do_not_share_show_no_symmetry(frames_of_a_virus: Any) -> None:
    emc = settled(frames_of_a_virus, 0.3)
    emc.half_correlation[:] = 0.1
    assert not seeks_symmetry(emc)
    assert look_for_symmetry(emc) is None


def test_a_nearly_round_particle_that_shows_no_symmetry_gets_other_starts(
    frames_of_a_virus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orienteer.reconstruction.found_symmetry.look_for_symmetry", lambda emc: None)
    emc = settled(frames_of_a_virus, 0.3)
    assert emc.course.n_starts == 1
    assert emc.take_turn("next stage") == (
        "With a nearly round particle, a start may reach a wrong solution: there will be up to 4 starts, and "
        "the next begins with the inverse of this one."
    )
    assert (emc.course.n_starts, emc.course.start, emc.course.stage) == (4, 1, 0)
    assert len(emc.candidates) == 1
    assert not emc.course.has_asked_symmetry  # the other start has not been looked at
    np.testing.assert_array_equal(emc.full[0], inverse_start(emc.candidates[0]["full"][0]))
    np.testing.assert_array_equal(emc.models, np.stack([emc.full] * 2))
    # Whoever says how many starts there are gets as many.
    emc = settled(frames_of_a_virus, 0.3, starts=1)
    emc.take_turn("next stage")
    assert (emc.course.n_starts, emc.course.stage) == (1, 1)


@pytest.mark.parametrize(
    ("changes", "starts"),
    [
        ({}, 1),
        ({"symmetry": "C11"}, 1),
        ({"symmetry": "D6"}, 4),
        ({"symmetry": "T"}, 2),
        ({"symmetry": "I"}, 2),
        ({"symmetry": "I", "starts": 5}, 5),
    ],
)
def test_symmetric_particles_get_several_starts(
    frames_of_a_virus: Any, changes: dict[str, Any], starts: int
) -> None:
    assert frames_of_a_virus.emc(**(SETTINGS | changes)).course.n_starts == starts


def test_every_second_start_of_a_nearly_round_particle_is_the_inverse_of_the_one_before(
    frames_of_a_virus: Any, simulated: Any
) -> None:
    virus_like = settled(frames_of_a_virus, 0.3, starts=4)
    blobs = simulated(random_blobs(DIAMETER_A, 4, seed=1), 28, 40.0, frames=40, photons_per_frame=1500)
    uneven = settled(blobs, 0.1, starts=4)
    for emc, is_round in ((virus_like, True), (uneven, False)):
        models, full = emc.models, emc.full
        for start in (1, 2, 3):
            emc.models, emc.full = models, full  # every start comes to the same
            assert emc.take_turn("next start") == ""
            assert emc.course.start == start
            is_inverse = np.array_equal(emc.full[0], inverse_start(full[0]))
            assert is_inverse == (is_round and start != 2)


def test_a_symmetry_that_is_not_kept_leaves_everything_as_it_was(
    frames_of_a_virus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "orienteer.reconstruction.found_symmetry.judge_symmetry", lambda emc, gains: (False, "It has not.")
    )
    emc = settled(frames_of_a_virus, 0.3)
    models, emc.course.last_log_likelihood = emc.models, -7.0
    emc.take_turn("next stage")
    assert emc.take_turn("next stage").startswith("It has not. With a nearly round particle, a start may")
    assert (emc.course.n_starts, emc.course.start, emc.group.name) == (4, 1, "C1")
    assert [each["log_likelihood"] for each in emc.candidates] == [-7.0]
    np.testing.assert_array_equal(emc.candidates[0]["models"], models)


def test_a_start_that_shows_the_symmetry_is_the_last(frames_of_a_virus: Any) -> None:
    emc = settled(frames_of_a_virus, 0.3)
    emc.course.n_starts, emc.course.start, emc.candidates = 4, 1, [{"log_likelihood": 0.0}]
    assert "is that its symmetry?" in emc.take_turn("next start")
    settle(emc)
    assert emc.take_turn("next start").startswith("The intensity has the symmetry I")
    assert (emc.course.start, emc.course.stage, emc.candidates) == (1, 1, [])
    assert emc.course.has_start


def test_starts_that_were_asked_for_are_made_and_the_best_is_looked_at(frames_of_a_virus: Any) -> None:
    emc = settled(frames_of_a_virus, 0.3, starts=2)
    emc.course.last_log_likelihood = -1.0
    assert emc.take_turn("next start") == ""
    assert (emc.course.start, len(emc.candidates)) == (1, 1)
    emc.course.last_log_likelihood = -2.0
    assert "is that its symmetry?" in emc.take_turn("best start")
    assert (emc.course.start, emc.course.stage, emc.group.name) == (0, 0, "I")


def test_a_first_stage_that_would_end_the_run_is_looked_at_too(
    frames_of_a_virus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Halves that agree about nothing near the edge may agree about it with a symmetry."""
    emc = settled(frames_of_a_virus, 0.3)
    models = emc.models

    def judge(now: Any) -> str:
        emc.take_models(replace(emc._found, models=models))  # as if they had become so
        emc.half_correlation[:] = 0.9
        emc.noise.forget()
        emc.course.iteration += 1
        return emc.course._end("At 40 A the two halves do not agree any more.")

    monkeypatch.setattr(emc.course, "judge", judge)
    # One iteration from a random start makes no sentinel likelier, and the stage would just go on.
    monkeypatch.setattr("orienteer.reconstruction.course.turns.watch_sentinels", lambda *_: None)
    step = emc.step()
    assert "is that its symmetry?" in step.note
    assert (step.finished, step.reason, emc.group.name) == (False, "", "I")
    monkeypatch.setattr(
        "orienteer.reconstruction.found_symmetry.judge_symmetry", lambda emc, gains: (True, "It has.")
    )
    monkeypatch.setattr("orienteer.reconstruction.emc.refine_all", lambda emc, likelihood: None)
    step = emc.step()
    assert (step.note, step.finished, step.symmetry) == ("It has.", True, "I")


def test_a_raised_limit_goes_on_where_the_search_would_have_been(frames_of_a_virus: Any) -> None:
    emc = settled(frames_of_a_virus, 0.3, iterations=1)
    emc.step()
    emc.course.after_limit, emc.course.finished = "next stage", True
    emc.models = settled(frames_of_a_virus, 0.3).models
    emc.half_correlation[:] = 0.9
    emc.noise.forget()
    again = frames_of_a_virus.emc(**SETTINGS, iterations=9)
    again.restore(emc.state())
    assert again.group.name == "I"
    assert any("is that its symmetry?" in remark for remark in again.remarks)


def test_poses_turn_with_the_models(frames_of_a_virus: Any) -> None:
    emc = settled(frames_of_a_virus, 0.0)
    emc.table.quaternion[:] = random_uniform(len(emc.table.quaternion), 2)
    chosen = slice(0, 20)

    def slices(emc: Any) -> Any:
        matrices = np.swapaxes(to_matrix(emc.table.quaternion[chosen]), 1, 2).astype(np.float32)
        points = emc.pixels.q_inv_A[emc.work.places] / emc.work.stage.voxel_inv_A
        length = np.linalg.norm(points, axis=1)
        inner = points[(length > 6) & (length < 20)].astype(np.float32)
        return slice_volume(emc.models[0, 0], inner, matrices)

    before = slices(emc)
    try_symmetry(emc)
    assert np.corrcoef(before.ravel(), slices(emc).ravel())[0, 1] > 0.9


def test_what_was_found_goes_with_a_map_that_is_handed_over(frames_of_a_virus: Any) -> None:
    emc = tried(frames_of_a_virus, 0.3)
    learnt = LearntMap.from_state(LearntMap.of(emc).state())
    assert learnt.symmetry == "I"
    for given, taken in (("auto", "I"), ("C1", "C1")):
        other = frames_of_a_virus.emc(**SETTINGS, symmetry=given)
        begin_from(other, learnt, stage=1)
        assert other.group.name == taken


def test_a_checkpoint_keeps_what_is_tried(frames_of_a_virus: Any) -> None:
    emc = tried(frames_of_a_virus, 0.3)
    emc.step()
    again = frames_of_a_virus.emc(**SETTINGS)
    again.restore(emc.state())
    assert (again.group.name, again.course.tries_symmetry) == ("I", True)
    ours, theirs = emc.step(), again.step()
    assert ours.log_likelihood == theirs.log_likelihood
    np.testing.assert_array_equal(emc.models, again.models)
    assert emc.take_turn("next stage") == again.take_turn("next stage")
    assert again.course.stage == 1


@pytest.mark.gpu
def test_a_trial_on_the_gpu_is_that_on_the_cpu(frames_of_a_virus: Any) -> None:
    cpu = settled(frames_of_a_virus, 0.3)
    settings = EmcSettings(**SETTINGS, deterministic=True)
    gpu = Emc(frames_of_a_virus.source(), settings, seed=1, device="cuda")
    gpu.take_learnt(cpu.learnt())
    assert seeks_symmetry(gpu)
    assert gpu.take_turn("next stage") == cpu.take_turn("next stage")
    assert isinstance(gpu.models, gpu.xp.ndarray)
    np.testing.assert_allclose(to_numpy(gpu.models), cpu.models, atol=2e-3)
    np.testing.assert_allclose(gpu.candidates[0]["evidence"], cpu.candidates[0]["evidence"], atol=0.1)
    settle(gpu)
    assert gpu.group.name == "I"
    assert gpu.take_turn("next stage").startswith("The intensity has the symmetry I")


@pytest.mark.slow
def test_a_blind_run_finds_it_by_itself_and_comes_nearer_to_the_truth(frames_of_a_virus: Any) -> None:
    """From a random start to the end, with nothing but the frames."""
    nearness, notes = [], []
    for symmetry in ("C1", "auto"):
        emc = frames_of_a_virus.emc(diameter_A=DIAMETER_A, symmetry=symmetry)
        while not emc.finished:
            notes.append(emc.step().note)
        nearness.append(nearness_of_speckles(frames_of_a_virus, emc))
    assert any("The intensity has the symmetry I" in note for note in notes)
    assert nearness[1] > nearness[0] + 0.05
