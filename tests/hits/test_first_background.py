"""Which of the first shots are empty, when nobody has said so."""

import numpy as np
import pytest

from orienteer.hits.first_background import N_GROUPS, expected_form, find_empty, pixel_groups
from orienteer.simulation.truth import ShotKind


def ring_sums(patterns, detector):
    group = pixel_groups(patterns.n_pixels, np.ones(patterns.n_pixels, bool), detector)
    return np.stack([patterns.dense()[:, group == g].sum(axis=1) for g in range(N_GROUPS)], axis=1).astype(
        float
    )


@pytest.mark.parametrize(
    "imperfections",
    [
        {},
        {"background_jitter": 0.3},
        {"empty_fraction": 0.4, "background_jitter": 0.3},
    ],
    ids=["steady", "varying", "many hits"],
)
def test_empty_shots_are_found_among_hits(stream, imperfections):
    experiment, patterns = stream(**imperfections)
    patterns = patterns[:600]
    kind = patterns.columns["truth_kind"]
    empty, differs = find_empty(ring_sums(patterns, experiment.detector))
    assert empty[kind == ShotKind.EMPTY].mean() > 0.97
    assert not empty[np.isin(kind, (ShotKind.HIT, ShotKind.MULTIPLE))].any()
    assert differs[np.isin(kind, (ShotKind.HIT, ShotKind.MULTIPLE))].all()
    assert not differs[kind == ShotKind.EMPTY].any()


def test_shots_that_are_all_empty_are_found_to_be(draw):
    empty, differs = find_empty(draw.poisson(30.0, (500, N_GROUPS)).astype(float))
    assert empty.mean() > 0.99
    assert not differs.any()


def test_dark_shots_do_not_stand_for_the_background(draw):
    sums = draw.poisson(30.0, (500, N_GROUPS)).astype(float)
    sums[::9] = 0
    empty, _ = find_empty(sums)
    assert empty[sums.any(axis=1)].mean() > 0.99
    assert not empty[::9].any()


def test_groups_are_rings_of_as_many_pixels(stream):
    experiment, _ = stream()
    detector = experiment.detector
    used = np.arange(detector.n_pixels) % 7 > 0
    group = pixel_groups(detector.n_pixels, used, detector)
    assert np.ptp(np.bincount(group[used])) <= 1
    assert (group[~used] == -1).all()
    radius = np.linalg.norm(detector.positions_m[:, :2], axis=1)
    assert (np.diff([radius[group == g].mean() for g in range(N_GROUPS)]) > 0).all()


def test_hits_are_expected_to_be_brightest_near_the_beam(stream):
    experiment, _ = stream()
    used = np.ones(experiment.n_pixels, bool)
    used[0] = False
    form = expected_form(used, experiment.detector)
    radius = np.linalg.norm(experiment.detector.positions_m[:, :2], axis=1)
    assert form.sum() == pytest.approx(1)
    assert form[0] == 0
    assert form[radius < 0.1 * radius.max()].min() > 20 * form[radius > 0.8 * radius.max()].max()
