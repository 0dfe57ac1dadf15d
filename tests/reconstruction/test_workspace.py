"""The fixed parts of a stage: frames in groups of similar fluence, each frame once."""

from typing import Any

import numpy as np
import pytest

from orienteer.orientation.quaternion import rotate
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.expectation import score_tile


@pytest.fixture(scope="module")
def emc(tiny: Any) -> Any:
    return tiny.emc(fluence="estimate", level=2)


def test_every_frame_is_in_one_batch_and_groups_are_narrow(emc: Any) -> None:
    work = emc.work
    seen = []
    for part, _ in work.parts(emc.models):
        for batch in work.batches(part, emc.fluence):
            seen.append(batch.places)
            for group in batch.groups:
                own = emc.fluence[batch.places[group.columns]]
                assert own.max() <= 2.0001 * own.min()
                # That of all frames alike, in whatever batch.
                assert own.max() / 2.0001 <= group.fluence <= 2.0001 * own.min()
                assert not group.is_even or np.ptp(own) == 0
    assert sorted(np.concatenate(seen).tolist()) == list(range(len(emc.fluence)))


def test_a_pose_samples_the_model_where_its_rotation_leads_to_the_detector(emc: Any) -> None:
    q = np.array([0.3, -0.5, 0.8])
    sampled = np.asarray(emc.work.poses.matrices, np.float64) @ q
    turned = rotate(emc.work.quaternions, sampled)
    np.testing.assert_allclose(turned, np.broadcast_to(q, sampled.shape), atol=1e-6)


def test_each_half_meets_the_model_of_the_other(emc: Any) -> None:
    models = np.stack([np.full_like(emc.models[0], h) for h in range(2)])
    met = {part: float(own.max()) for part, own in emc.work.parts(models)}
    assert (met[0], met[1]) == (1, 0)


def test_scores_are_those_of_each_frames_own_fluence(emc: Any) -> None:
    """Differences between rows, which alone decide, from groups and from every frame by itself."""
    work = emc.work
    emc.noise.dispersion = np.full(40, 0.05)
    likelihood = emc.noise.likelihood(work)
    batch = next(iter(work.batches(0, emc.fluence)))
    tile = next(work.rows.tiles())
    slices = Expander(emc.models[0], work.points).slices(work.rows, tile, batch.by_pixel).copy()
    together = score_tile(likelihood, slices, batch)
    uncorrected, corrected = [], []
    for group in batch.groups:
        rough = likelihood.expand(slices, group.fluence, batch.by_pixel)
        rough = group.product.scores(rough[0]) - np.asarray(rough[1])[:, None]
        for d in range(group.columns.start, group.columns.stop):
            exact = likelihood.expand(slices, float(batch.fluence[d]), batch.by_pixel)
            place = d - group.columns.start
            exact = group.product.scores(exact[0])[:, place] - np.asarray(exact[1])
            for values, errors in (
                (together[:, d], corrected),
                (rough[:, place], uncorrected),
            ):
                errors.append(np.std(values - exact))
    assert np.mean(corrected) < 0.25 * np.mean(uncorrected)
    # Half a nat moves no frame; at the rims of groups, where the second order counts, it is one nat and more.
    assert np.median(corrected) < 0.5
    assert np.max(corrected) < 2.0


def test_weights_decide_what_is_merged(emc: Any) -> None:
    likelihood = emc.noise.likelihood(emc.work)
    photons = []
    for weight in (1.0, 0.5):
        emc.table.weight = np.full(len(emc.fluence), weight)
        sums = emc.orient_and_merge(0, likelihood, 0.1).sums[0].finish()
        photons.append(sums[..., 0].sum())
    assert photons[1] == pytest.approx(photons[0] / 2, rel=1e-4)
    emc.table.weight = np.ones(len(emc.fluence))
