"""Mistakes that the field has made before, held against the whole engine."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orienteer.compare.shells import shell_correlation
from orienteer.detector.masks import PixelUse
from orienteer.particle.named_bodies import random_blobs, virus
from orienteer.posterior.scores import ScoreStore
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.expectation import expect, score_tile
from orienteer.reconstruction.settings import EmcSettings
from orienteer.simulation.truth import ShotKind
from orienteer.source.patterns import FRAME_MASK

PLAIN: dict[str, Any] = {"likelihood": "poisson", "fluence": "constant", "diameter_A": 200}


def is_finite(emc: Emc) -> bool:
    """Whether nothing that goes on into the next iteration is NaN or infinite."""
    numbers = [
        value
        for name, value in emc.state().items()
        if not name.startswith("course/") and not isinstance(value, str | None)
    ]
    return len(numbers) > 10 and all(np.isfinite(value).all() for value in numbers)


def models_after(source: Any, n_steps: int = 2, **settings: Any) -> Any:
    emc = Emc(source, EmcSettings(symmetry="I", **{**PLAIN, **settings}), seed=1, device="cpu")
    for _ in range(n_steps):
        emc.step()
    assert is_finite(emc)
    return emc


def relative_truth(data: Any, emc: Emc) -> Any:
    """The true intensity over the profile of the frames, and over its own mean in each shell."""
    n = emc.work.edge_voxels
    axis = (np.arange(n) - n // 2) * emc.work.stage.voxel_inv_A
    length = np.sqrt(sum(a**2 for a in np.meshgrid(axis, axis, axis, indexing="ij")))
    ratio = data.truth_on(emc) / emc.profile(length)
    shell = np.rint(length / emc.work.stage.voxel_inv_A).astype(int)
    mean = np.bincount(shell.ravel(), ratio.ravel()) / np.bincount(shell.ravel())
    relative = ratio / mean[shell]
    relative[length > emc.edge_inv_A] = 1.0
    return relative.astype(np.float32)


# 4: merging ---------------------------------------------------------------------------------------------


def hold_temperature(emc: Emc, inverse: float) -> None:
    """Let no iteration of the present stage change the temperature."""
    emc.annealing.inverse = inverse
    emc.annealing.inverse_temperature = lambda *_: inverse  # type: ignore[method-assign]


def test_the_truth_stays_what_it_is_when_frames_have_no_noise(simulated: Any, tiny: Any) -> None:
    data = simulated(tiny.particle, 14, 65.0, frames=700, photons_per_frame=3000, poisson=False)
    emc = data.emc(**PLAIN, level=4, sentinels=0.0)
    truth = data.truth_on(emc)
    emc.models = np.stack([relative_truth(data, emc)[None]] * 2)
    hold_temperature(emc, 0.2)
    found = []
    for _ in range(6):
        emc.step()
        found.append(shell_correlation(truth, emc.volumes()[0].values).correlation[2:12])
    # The grid of poses blurs the outer shells a little, once and not more with every iteration.
    assert found[-1][:6].min() > 0.98
    assert found[-1].min() > 0.95
    assert np.abs(found[-1] - found[1]).max() < 0.02


def test_the_likelihood_rises_without_halves_and_temperature(tiny: Any) -> None:
    """Plain expectation maximisation: trilinear merging makes it so up to small change."""
    emc = tiny.emc(**PLAIN, symmetry="I", halves=False, sentinels=0.0, kept_mass=1.0)
    hold_temperature(emc, 1.0)
    emc.step()  # the random start has no symmetry
    evidence = []
    for _ in range(12):
        work = emc.work
        likelihood = emc.noise.likelihood(work)
        expander = Expander(emc.models[0], work.points)
        total = 0.0
        for batch in work.batches(0, emc.fluence):
            store = ScoreStore(len(work.rows), len(batch), "cpu", 1.0)
            total += float(expect(likelihood, expander, work.rows, batch, 1.0, store).log_evidence.sum())
        evidence.append(total / len(tiny.patterns))
        emc.step()
    assert evidence[-1] > evidence[0] + 2
    assert np.diff(evidence).min() > -0.05


# 5: empty voxels, zeros, edges --------------------------------------------------------------------------


def test_what_no_frame_shows_keeps_the_mean_of_its_shell(tiny: Any) -> None:
    """A missing wedge of pixels leaves voxels empty: they are the radial mean, and no frame shuns them."""
    y, x = np.indices(tiny.detector.frame_shape)
    mask = np.where((np.abs(y - 6.5) < 3.0) | (np.hypot(x - 6.5, y - 6.5) < 1.5), PixelUse.NEVER, 0)
    few = tiny.detector.with_mask(mask.ravel().astype(np.uint8))
    emc = models_after(tiny.source(detector=few))
    centre = emc.work.edge_voxels // 2
    assert emc.full[0, centre, centre, centre] == pytest.approx(1.0)
    assert emc.models.min() > 0  # which frames meet
    assert emc.full.min() > 0
    unseen = emc._found.exposure == 0
    assert unseen.sum() > 100
    assert np.median(emc.full[0][unseen]) == pytest.approx(1.0, abs=0.05)


def test_frames_that_show_nothing_have_no_opinion_and_do_no_harm(tiny: Any) -> None:
    """A dark frame, and one whose pixels are all forbidden, are spread over all poses."""
    counts = np.array(tiny.patterns.dense())
    forbidden = np.zeros_like(counts, dtype=np.uint8)
    emc = tiny.emc(**PLAIN, symmetry="I")
    dark, blind = np.flatnonzero(~emc.sentinel)[:2]
    counts[dark] = 0
    forbidden[blind] = PixelUse.NEVER
    columns = {**tiny.patterns.columns, FRAME_MASK: forbidden}
    emc = models_after(tiny.source(frames=counts, columns=columns), reject_junk=False)
    n_poses = len(emc.work.poses)
    weights = np.exp(np.asarray(emc.work.poses.log_weights, dtype=np.float64))
    flat = np.exp(-np.sum(weights * np.log(weights)))
    assert flat == pytest.approx(n_poses, rel=0.05)
    assert emc.table.perplexity[[dark, blind]] == pytest.approx(flat, rel=1e-3)


def test_a_model_of_zeros_costs_finite_nats_and_recovers(tiny: Any) -> None:
    emc = tiny.emc(**PLAIN, symmetry="I")
    emc.models[:] = 0.0
    first, second = emc.step(), emc.step()
    assert is_finite(emc)
    assert np.isfinite(first.log_likelihood)
    assert second.log_likelihood > first.log_likelihood


# 6: precision -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", ["poisson", "negative-binomial"])
@pytest.mark.parametrize("photons", [300, 30_000])
def test_scores_differ_as_in_double_precision(
    simulated: Any, tiny: Any, likelihood: str, photons: int
) -> None:
    data = simulated(tiny.particle, 14, 65.0, frames=60, photons_per_frame=photons)
    emc = data.emc(**{**PLAIN, "likelihood": likelihood}, level=4, sentinels=0.0)
    emc.step()
    work, noise = emc.work, emc.noise
    scorer = noise.likelihood(work)
    batch = next(iter(work.batches(0, emc.fluence)))
    tile = next(iter(work.rows.tiles()))
    slices = Expander(emc.models[1], work.points).slices(work.rows, tile, batch.by_pixel).copy()
    found = np.asarray(score_tile(scorer, slices, batch), dtype=np.float64)
    W = (slices.T if batch.by_pixel else slices).astype(np.float64)
    expected = W * np.asarray(work.pixel_weights, dtype=np.float64)
    counts = np.array(data.patterns.dense())[:, emc.pixels.index[work.places]][batch.places]
    if likelihood == "poisson":
        wanted = np.log(expected) @ counts.T - expected.sum(axis=1)[:, None]
    else:
        shell = np.minimum(work.shell, len(noise.dispersion) - 1)
        r = 1 / np.maximum(noise.dispersion[shell], 1e-9)
        wanted = np.log(expected / (r + expected)) @ counts.T
        wanted -= np.sum(r * np.log1p(expected / r), axis=1)[:, None]
    difference = (found - found[0]) - (wanted - wanted[0])
    assert np.abs(difference).max() < 0.1


# 7: fluence ---------------------------------------------------------------------------------------------


def test_fluences_are_found_with_mean_one_and_photons_are_kept(tiny: Any) -> None:
    emc = tiny.emc(symmetry="I", reject_junk=False)
    assert emc.estimates_fluence
    for _ in range(6):
        emc.step()
    truth = tiny.patterns.columns["truth_fluence"]
    merged = emc.table.merged
    assert np.corrcoef(emc.fluence[merged], truth[merged])[0, 1] > 0.95
    assert emc.fluence[merged].mean() == pytest.approx(1.0, abs=0.02)
    counted = np.array(tiny.patterns.dense()).sum(axis=1)[merged]
    assert np.sum(emc.fluence * emc.table.expected) == pytest.approx(counted.sum(), rel=0.03)


def test_equal_fluences_stay_equal(simulated: Any, tiny: Any) -> None:
    data = simulated(tiny.particle, 14, 65.0, frames=80, photons_per_frame=300)
    emc = data.emc(symmetry="I")
    emc.step()
    assert np.array_equal(emc.fluence, np.ones(80))


# 8: masks -----------------------------------------------------------------------------------------------


def test_what_stands_in_a_forbidden_pixel_changes_no_bit(tiny: Any) -> None:
    counts = np.array(tiny.patterns.dense()).astype(np.int32)
    mask = np.zeros(counts.shape[1], dtype=np.uint8)
    mask[[3, 90, 91, 120]] = PixelUse.NEVER
    frame_mask = np.zeros(counts.shape, dtype=np.uint8)
    frame_mask[::3, 40:50] = PixelUse.NEVER
    columns = {**tiny.patterns.columns, FRAME_MASK: frame_mask}
    spoilt = counts.copy()
    spoilt[:, mask == PixelUse.NEVER] = 1_000_000
    spoilt[frame_mask == PixelUse.NEVER] = 999
    detector = tiny.detector.with_mask(mask)
    clean, dirty = (
        models_after(
            tiny.source(frames=frames, detector=detector, columns=columns), likelihood="negative-binomial"
        )
        for frames in (counts, spoilt)
    )
    assert np.array_equal(clean.models, dirty.models)
    assert np.array_equal(clean.table.log_likelihood, dirty.table.log_likelihood)


def test_pixels_that_only_merge_orient_nothing(tiny: Any) -> None:
    mask = np.zeros(tiny.patterns.n_pixels, dtype=np.uint8)
    mask[60:100] = PixelUse.MERGE_ONLY
    counts = np.array(tiny.patterns.dense())
    emc = Emc(
        tiny.source(detector=tiny.detector.with_mask(mask)),
        EmcSettings(**PLAIN, level=4, reject_junk=False),
        device="cpu",
    )
    work = emc.work
    used = emc.pixels.index[work.places]
    assert set(used[work.n_scored :]) == set(range(60, 100))
    scored = counts[:, mask == 0].sum(axis=1)
    assert np.array_equal(work.scored_photons(emc.frames), scored)
    assert emc.step().photons_merged == counts[~emc.sentinel].sum()


# 12: selection ------------------------------------------------------------------------------------------


def test_sentinels_decide_nothing(tiny: Any) -> None:
    """Whatever the sentinels show, models, fluences and noise of the others are the same."""
    counts = np.array(tiny.patterns.dense())
    first = tiny.emc(symmetry="I", sentinels=0.3)
    other = counts.copy()
    # The same photons in the mean, so that the radial mean of all frames is the same.
    places = np.flatnonzero(first.sentinel)
    other[places] = counts[np.roll(places, 1)]
    second = Emc(tiny.source(frames=other), first.settings, seed=1, device="cpu")
    for _ in range(3):
        steps = first.step(), second.step()
        assert steps[0].log_likelihood == steps[1].log_likelihood
    assert np.array_equal(first.models, second.models)
    assert np.array_equal(first.fluence[~first.sentinel], second.fluence[~first.sentinel])
    assert not np.array_equal(first.table.log_likelihood[places], second.table.log_likelihood[places])


def test_half_of_the_shots_may_be_background_alone(simulated: Any, tmp_path: Path) -> None:
    """Who chooses frames by a model finds some for any model: shots without a particle must go, blindly."""
    settings = {"frames": 240, "photons_per_frame": 2000, "background_photons": 1000, "empty_fraction": 0.5}
    data = simulated(virus(200.0), 20, 40.0, **settings)
    np.save(tmp_path / "b.npy", np.full(400, 1000 / 400))
    emc = data.emc(symmetry="I", background_file=str(tmp_path / "b.npy"), sentinels=0.1)
    while not emc.finished:
        emc.step()
    empty = np.asarray(data.patterns.columns["truth_kind"]) == ShotKind.EMPTY
    rejected = emc.best_model < 0
    assert rejected[empty].mean() > 0.95
    assert rejected[~empty].mean() < 0.05
    # Sentinels are judged like all others, but nobody learns from them.
    assert rejected[empty & emc.sentinel].mean() > 0.9


def test_frames_without_orientation_show_nothing_whatever_the_halves_agree_about(simulated: Any) -> None:
    """Einstein from noise: halves that orient each other's frames come to share what is not there."""
    tiny = simulated(random_blobs(215.0, 20, 5), 20, 40.0, frames=250, photons_per_frame=300.0)
    length = np.linalg.norm(tiny.detector.q_inv_A(2.5), axis=1)
    photons = np.log(tiny.patterns.dense().mean(axis=0) + 1e-3)
    round_mean = np.exp(np.polynomial.Polynomial.fit(length, photons, 6)(length))
    round_frames = np.random.default_rng(4).poisson(round_mean, (250, len(length))).astype(np.float32)
    for frames, is_nothing in ((round_frames, True), (tiny.patterns.frames, False)):
        settings = EmcSettings(diameter_A=215.0, level=3)  # as blind as a finer grid, in half the time
        emc = Emc(tiny.source(frames=frames), settings, seed=1, device="cpu")
        while not emc.finished:
            step = emc.step()
        assert (step.agrees_to_A is None) == is_nothing
        assert ("no better than a round object" in emc.reason) == is_nothing
        assert (step.sentinel_gain_nats < 0.5) == is_nothing
