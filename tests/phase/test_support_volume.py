"""The volume of the support comes from held-out voxels, whatever the first support is."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from orienteer.phase import support_volume
from orienteer.phase.course import Course
from orienteer.phase.data import phasing_data
from orienteer.phase.filled import filled_voxels
from orienteer.phase.held_out import Predicted
from orienteer.phase.settings import PhaseSettings
from orienteer.phase.smallest_volume import WORSE, are_passed_over, are_too_small, smallest_as_good
from orienteer.phase.state import PhaseState
from orienteer.phase.support_volume import choose_volume


def test_the_choice_holds_the_body_and_little_more_even_if_the_first_support_does_not(body, truth_of) -> None:
    made = body(speckles=5.0, noise=0.05)
    data = phasing_data(made.intensity, device="cpu")
    true_volume = filled_voxels(truth_of(made, data), data.measured).sum()
    middle = (slice(data.n // 2 - 2, data.n // 2 + 3),) * 3
    first = np.zeros((data.n, data.n, data.n), bool)
    first[middle] = True
    assert first.sum() < 0.8 * true_volume
    course = replace(Course.of(data, PhaseSettings()), first=first)
    told: list[tuple[int, int]] = []
    volume = choose_volume(course, 0, lambda *step: told.append(step))
    assert made.volume_A3 / data.voxel_A**3 < volume < 1.5 * true_volume
    assert all(0 < done <= total for done, total in told)
    assert told[-1][0] == told[-1][1]
    assert (np.diff([done for done, _ in told]) >= 0).all()
    # Far smaller volumes are not asked once several have been worse.
    steps = np.diff([done for done, _ in told])
    assert steps.max() > 1.5 * steps.min()


def test_the_choice_is_the_smallest_volume_that_is_worse_by_less_than_the_error() -> None:
    """Falling volumes: too large, best, as good but for chance, twice worse, and good by chance alone."""
    rng = np.random.default_rng(0)
    speckle = np.repeat(np.arange(100), 5)
    apart = rng.normal(0, 0.5, 100)
    apart = ((apart - apart.mean()) / apart.std())[speckle]
    below = [0.5, 0.0, 0.08, 0.12, 0.4, 0.05]
    by_voxel = [(0.5 if k != 1 else 0.0) * apart - less for k, less in enumerate(below)]
    found = Predicted(np.stack(by_voxel), np.ones(500), speckle)
    chosen, error = smallest_as_good(found)
    assert chosen == 2
    assert error[2] == pytest.approx(0.05, rel=0.05)  # half a nat, over the root of a hundred speckles
    assert smallest_as_good(found, 0.06)[0] == 3  # starts that differ so much tell less


def test_a_volume_at_which_amplitudes_are_twice_as_wrong_is_worse_however_few_speckles_say_so() -> None:
    """Sixty copies of one speckle scatter so much that two errors of the difference allow anything."""
    speckle = np.repeat(np.arange(60), 5)
    apart = np.where(speckle % 2, 1.0, -1.0)
    below = [0.0, 0.1, 0.5, 0.9, 0.8]
    by_voxel = [(0.5 if k else 0.0) * k * apart - less for k, less in enumerate(below)]
    found = Predicted(np.stack(by_voxel), np.ones(300), speckle, n_copies=60)
    chosen, error = smallest_as_good(found)
    assert 2 * error[2] > 0.9
    assert chosen == 2
    assert smallest_as_good(found, most=0.4)[0] == 1


def _fitted(below: list[float], scatter: float) -> Predicted:
    """Volumes that fit seen voxels worse than the first by so many nats, with a scatter over 100 speckles."""
    speckle = np.repeat(np.arange(100), 5)
    rng = np.random.default_rng(1)
    apart = rng.normal(0, scatter, (len(below), 100))
    apart = (apart - apart.mean(axis=1, keepdims=True))[:, speckle]
    return Predicted(apart - np.array(below)[:, None], np.ones(500), speckle)


def test_a_volume_that_cannot_fit_what_was_seen_is_too_small_even_if_held_out_voxels_like_it() -> None:
    """Held-out voxels of a symmetric particle are copies of few speckles, and half a virus predicted them."""
    unknowns = np.array([0.5, 0.4, 0.3, 0.2, 0.15])
    seen = _fitted([0.0, 0.02, 0.04, 0.4, 0.3], scatter=0.05)
    refused = are_too_small(seen, unknowns)
    assert refused.tolist() == [False, False, False, True, True]
    predicted = _fitted([0.0, 0.1, 0.1, 0.15, 0.2], scatter=2.0)
    assert smallest_as_good(predicted)[0] == 4
    assert smallest_as_good(predicted, refused=refused)[0] == 2
    # The best is none of those either: by chance half a virus may predict best.
    liked = _fitted([0.1, 0.1, 0.1, 0.0, 0.1], scatter=2.0)
    assert smallest_as_good(liked, refused=refused)[0] == 2


def test_less_room_may_fit_less_of_the_noise() -> None:
    """With p unknowns of N amplitudes 1 - p / N of the variance of the noise is left."""
    unknowns = np.array([0.8, 0.5, 0.2])
    by_noise = np.log((1 - unknowns) / (1 - unknowns[0])) / 2
    assert not are_too_small(_fitted(by_noise.tolist(), scatter=0.01), unknowns).any()
    more = are_too_small(_fitted((1.2 * by_noise).tolist(), scatter=0.01), unknowns)
    assert more.tolist() == [False, True, True]
    # What scatters from speckle to speckle tells less.
    assert not are_too_small(_fitted((1.2 * by_noise).tolist(), scatter=2.0), unknowns).any()


def test_volumes_at_which_starts_had_lost_the_density_are_passed_over() -> None:
    """Falling volumes: found, lost, lost, found again, smaller and as good, too small, lost for good."""
    rng = np.random.default_rng(2)
    speckle = np.repeat(np.arange(100), 5)

    def results(nats: list[float]) -> Predicted:
        noise = rng.normal(0, 0.2, (len(nats), 100))
        noise -= noise.mean(axis=1, keepdims=True)
        return Predicted((np.array(nats)[:, None] + noise)[:, speckle], np.ones(500), speckle)

    fitted = results([1.7, 0.6, 0.9, 1.5, 1.4, 0.5, 0.1])
    predicted = results([1.6, 1.0, 0.4, 1.55, 1.57, 0.2, 1.6])
    lost = are_passed_over(fitted, np.array([0.4, 0.3, 0.2, 0.15, 0.1, 0.05, 0.02]))
    assert lost.tolist() == [False, True, True, False, False, False, False]
    refused = are_too_small(fitted, np.array([0.9, 0.7, 0.5, 0.4, 0.3, 0.2, 0.1]))
    assert smallest_as_good(predicted, refused=refused)[0] == 0  # the lost ones had ended the search
    assert smallest_as_good(predicted, refused=refused, passed_over=lost)[0] == 4


def test_other_starts_go_down_if_the_first_have_found_no_density(body, truth_of, monkeypatch) -> None:
    made = body(speckles=5.0, noise=0.05)
    data = phasing_data(made.intensity, device="cpu")
    course = Course.of(data, PhaseSettings())
    true_volume = filled_voxels(truth_of(made, data), data.measured).sum()
    contrasts: list[float] = []
    numbers: list[range] = []
    monkeypatch.setattr(support_volume._Way, "contrast", property(lambda way: contrasts[len(numbers) - 1]))
    start = Course.start

    def noted(own: Course, which: range, *rest: Any) -> PhaseState:
        numbers.append(which)
        return start(own, which, *rest)

    monkeypatch.setattr(Course, "start", noted)
    for of_attempts, n_asked in (([0.9], 1), ([0.1, 0.9], 2), ([0.3, 0.2], 2)):
        contrasts[:] = of_attempts
        numbers.clear()
        volume = choose_volume(course, 0, lambda *step: None)
        assert made.volume_A3 / data.voxel_A**3 < volume < 1.6 * true_volume
        assert len(numbers) == n_asked
        assert len(set().union(*numbers)) == sum(map(len, numbers))  # no start twice


@pytest.mark.parametrize("is_noise", [False, True])
def test_noise_is_no_density(body, is_noise: bool) -> None:
    made = body(speckles=5.0, noise=0.05)
    diameter_A = phasing_data(made.intensity, device="cpu").diameter_A
    values = made.intensity.values
    if is_noise:
        speckles = np.random.default_rng(1).exponential(size=values.shape)
        values = np.where(np.isnan(values), np.nan, speckles)
    settings = PhaseSettings(diameter_A=diameter_A)
    data = phasing_data(made.intensity.with_values(values), settings, device="cpu")
    course = Course.of(data, settings)
    ball = np.pi / 6 * (data.diameter_A / data.voxel_A) ** 3
    volumes = support_volume.falling(ball, 0.1 * ball, 1.5)
    way = support_volume._best_way_down(course, volumes, 3, 0, lambda n: None)
    assert (way.contrast > support_volume._FOUND) == (not is_noise)


def test_starts_that_the_difference_map_leads_away_get_a_second_try(body, monkeypatch) -> None:
    """Starts that had the density keep it in a support that holds it."""
    made = body(speckles=5.0, noise=0.05)
    data = phasing_data(made.intensity, device="cpu")
    course = Course.of(data, PhaseSettings())
    ball = np.pi / 6 * (data.diameter_A / data.voxel_A) ** 3
    volumes = support_volume.falling(2 * ball, 0.1 * ball, 1.5)
    way = support_volume._best_way_down(course, volumes, 3, 0, lambda n: None)
    had, volume = way.judged[way.choice].fit, 1.2 * way.volumes[way.choice]
    rng = np.random.default_rng(3)

    def scramble(state: PhaseState, data: Any, beta: float) -> PhaseState:
        state.density[...] = rng.random(state.density.shape, dtype=np.float32)
        return state

    monkeypatch.setitem(support_volume.METHODS, "dm", scramble)
    again = way.once_more(volume)
    again.go_on(volume)
    assert again.judged[-1].fit > had - WORSE
    monkeypatch.setattr(support_volume, "_KEEPING", support_volume._SEARCHING)
    without = way.once_more(volume)
    without.go_on(volume)
    assert without.judged[-1].fit < had - WORSE


def test_the_second_way_begins_with_the_starts_of_the_chosen_volume(body, monkeypatch) -> None:
    """The choice may return to a larger volume, when a smaller one shows that starts had lost the density."""
    data = phasing_data(body(speckles=5.0).intensity, device="cpu")
    course = Course.of(data, PhaseSettings())
    speckle, rng = np.repeat(np.arange(100), 5), np.random.default_rng(2)
    # Of so many unknowns that the first fits noise.
    volumes = np.array([0.9, 0.6, 0.4]) * support_volume.independent_amplitudes(data)
    way = support_volume._Way(course, course.start([1, 2], np.full(2, 100.0), 0))
    script = [(1.6, 1.7), (1.6, 1.2), (0.9, 1.3)]  # how well volumes predict, and fit

    def judged() -> support_volume._Judged:
        def result(nats: float) -> Predicted:
            apart = rng.normal(0, 0.05, 100)
            return Predicted((nats + apart - apart.mean())[None, speckle], np.ones(500), speckle)

        return support_volume._Judged(*map(result, script[len(way.judged)]), apart=0.0)

    def phase(volume: float, phases: Any) -> None:
        way.state.density[...] = volume

    monkeypatch.setattr(way, "_judge", judged)
    monkeypatch.setattr(way, "_phase", phase)
    chosen = []
    for volume in volumes:
        way.go_on(volume)
        chosen.append(way.choice)
    assert chosen == [0, 1, 0]
    np.testing.assert_allclose(way.once_more(2 * volumes[0]).state.density, volumes[0], rtol=1e-6)
