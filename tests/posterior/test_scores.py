"""ScoreStore: posteriors from tiles of scores, against the formulas in float64."""

import math
import shutil
import subprocess
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import orienteer
from orienteer.compute.arrays import to_device, to_numpy
from orienteer.errors import OrienteerError
from orienteer.posterior.scores import ScoreStore

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
# On the GPU distances are kept in float16, wrong by less than 0.01 nat.
TOLERANCE = {"cpu": 2e-5, "cuda": 0.012}


def reference_posterior(scores: Any, log_prior: Any, beta: Any) -> tuple[NDArray[np.float64], Any]:
    x = np.asarray(beta, np.float64) * np.asarray(scores, np.float64) + np.asarray(log_prior)[:, None]
    top = x.max(axis=0)
    log_evidence = top + np.log(np.exp(x - top).sum(axis=0))
    return np.exp(x - log_evidence), log_evidence


def problem(n_rows: int, n_frames: int, spread: float = 6.0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(n_rows + n_frames)
    scores = (rng.normal(0, spread, (n_rows, n_frames)) - 500).astype(np.float32)
    log_prior = np.log(rng.dirichlet(np.full(n_rows, 5.0))).astype(np.float32)
    return scores, log_prior, rng.uniform(0.2, 1, n_frames).astype(np.float32)


def filled(
    device: Any, scores: Any, log_prior: Any, beta: Any, tile: int = 100, order: int = 1, **options: Any
) -> ScoreStore:
    store = ScoreStore(*scores.shape, device, **options)
    for first in list(range(0, len(scores), tile))[::order]:
        part = slice(first, first + tile)
        store.add(
            first,
            to_device(scores[part], device),
            to_device(log_prior[part], device),
            to_device(beta, device),
        )
    return store


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("n_rows", "n_frames"), [(1, 1), (5, 300), (1000, 3), (777, 333)])
@pytest.mark.parametrize("order", [1, -1])
def test_posteriors_agree_with_float64_for_any_order_of_tiles(
    device: Any, n_rows: int, n_frames: int, order: int
) -> None:
    scores, log_prior, beta = problem(n_rows, n_frames)
    p, log_evidence = reference_posterior(scores, log_prior, beta)
    store = filled(device, scores, log_prior, beta, order=order, kept_mass=1)
    found = store.finish()
    np.testing.assert_allclose(to_numpy(found.log_evidence), log_evidence, atol=2e-5)
    entropy = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=0)
    np.testing.assert_allclose(to_numpy(found.entropy), entropy, atol=1e-4)
    np.testing.assert_allclose(to_numpy(found.perplexity), np.exp(entropy), rtol=1e-4)
    np.testing.assert_array_equal(to_numpy(found.best_row), p.argmax(axis=0))
    np.testing.assert_array_equal(to_numpy(found.best_score), scores[p.argmax(axis=0), range(n_frames)])
    responsibilities = to_numpy(store.responsibilities(0, n_rows))
    near = p > p.max(axis=0) * math.exp(-16)
    np.testing.assert_allclose(responsibilities[near], p[near], rtol=TOLERANCE[device])
    np.testing.assert_allclose(responsibilities.sum(axis=0), 1, rtol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kept_mass", [0.9, 0.99, 0.999, 0.999999])
def test_what_is_kept_has_the_mass_and_sums_to_one(device: Any, kept_mass: float) -> None:
    scores, log_prior, beta = problem(3000, 100)
    store = filled(device, scores, log_prior, beta, kept_mass=kept_mass)
    posterior = store.finish()
    p, _ = reference_posterior(scores, log_prior, beta)
    responsibilities = np.concatenate(
        [to_numpy(store.responsibilities(k, k + 500)) for k in range(0, 3000, 500)]
    )
    mass = (p * (responsibilities > 0)).sum(axis=0)
    assert (mass >= kept_mass - 1e-3 * (1 - kept_mass) - 1e-7).all()
    np.testing.assert_allclose(to_numpy(posterior.kept_mass), mass, rtol=0.01)
    np.testing.assert_allclose(responsibilities.sum(axis=0), 1, rtol=1e-5)
    # Nothing likelier is dropped than what is kept, and not much more is kept than needed.
    n_kept = (responsibilities > 0).sum(axis=0)
    cumulative = np.cumsum(np.sort(p, axis=0)[::-1], axis=0)
    needed = (cumulative < kept_mass).sum(axis=0) + 1
    assert (n_kept >= 0.99 * needed - 1).all()
    assert n_kept.sum() < 1.5 * needed.sum()


@pytest.mark.parametrize("device", DEVICES)
def test_row_mass_and_lists_are_the_same_responsibilities(device: Any, matrix_of: Any) -> None:
    scores, log_prior, beta = problem(700, 150, spread=12)
    store = filled(device, scores, log_prior, beta)
    dense = to_numpy(store.responsibilities(0, 700))
    np.testing.assert_allclose(to_numpy(store.row_mass()), dense.sum(axis=1), rtol=1e-5, atol=1e-30)
    lists = store.kept()
    np.testing.assert_allclose(matrix_of(lists), dense, rtol=1e-6)
    np.testing.assert_array_equal(to_numpy(lists.row), np.nonzero(dense.T)[1])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n_frames", [1, 2, 5, 8, 300])
def test_probabilities_are_good_to_five_digits_where_distances_are_exact(device: Any, n_frames: int) -> None:
    # Eighths of a nat down to -16 are whole numbers to float16, too.
    distance = -np.arange(129) / 8
    scores = np.repeat(distance[:, None], n_frames, axis=1).astype(np.float32)
    store = filled(device, scores, np.zeros(129), np.ones(n_frames, np.float32), tile=50, kept_mass=1)
    expected = np.exp(distance) / np.exp(distance).sum()
    found = to_numpy(store.responsibilities(0, 129))
    np.testing.assert_allclose(found, np.repeat(expected[:, None], n_frames, axis=1), rtol=1e-5)
    np.testing.assert_allclose(to_numpy(store.row_mass()), n_frames * expected, rtol=1e-5)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize(
    "options",
    [
        "-arch=sm_90 -DVECTOR=1",
        "-arch=sm_90 -DVECTOR=2 -DLAW=1",
        "-arch=sm_90 -DVECTOR=4 -DLAW=2",
        "-arch=sm_80 -DVECTOR=4",
    ],
)
def test_kernels_compile_for_every_number_of_frames_of_a_thread(options: str, tmp_path: Path) -> None:
    source = Path(orienteer.__file__).parent / "posterior" / "scores.cu"
    command = ["nvcc", "--std=c++17", "-Werror", "all-warnings", "-cubin"]
    result = subprocess.run(
        [*command, *options.split(), "-o", str(tmp_path / "out"), str(source)], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("device", DEVICES)
def test_a_constant_per_frame_changes_nothing(device: Any) -> None:
    scores, log_prior, beta = problem(400, 50)
    scores = np.round(scores)  # so that float32 holds both exactly
    plain = filled(device, scores, log_prior, beta)
    moved = filled(device, scores + np.float32(1e4), log_prior, beta)
    np.testing.assert_array_equal(
        to_numpy(moved.responsibilities(0, 400)), to_numpy(plain.responsibilities(0, 400))
    )
    difference = to_numpy(moved.finish().log_evidence) - to_numpy(plain.finish().log_evidence)
    np.testing.assert_allclose(difference, 1e4 * beta, rtol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_equal_scores_give_the_prior_and_impossible_rows_nothing(device: Any) -> None:
    log_prior = np.log(np.array([0.1, 0.2, 0.3, 0.4, 1e-300]))
    log_prior[4] = -np.inf
    scores = np.full((5, 2), -1234.5, np.float32)
    scores[4] = 1e6
    store = filled(device, scores, log_prior, np.ones(2, np.float32), tile=2, kept_mass=1)
    for column in to_numpy(store.responsibilities(0, 5)).T:
        np.testing.assert_allclose(column, [0.1, 0.2, 0.3, 0.4, 0], rtol=TOLERANCE[device])
    np.testing.assert_array_equal(to_numpy(store.finish().best_row), 3)
    np.testing.assert_allclose(to_numpy(store.finish().log_evidence), -1234.5, rtol=1e-6)
    assert len(store.kept()) == 8


@pytest.mark.parametrize("device", DEVICES)
def test_frames_and_rows_that_nothing_explains_stay_empty(device: Any, matrix_of: Any) -> None:
    scores, log_prior, beta = problem(300, 4)
    scores[:, 1] = -np.inf
    scores[:, 2] = np.nan
    scores[5, 3] = np.nan
    store = ScoreStore(500, 4, device)  # rows 300 to 500 never come
    for first in (0, 150):
        part = slice(first, first + 150)
        store.add(first, *(to_device(x, device) for x in (scores[part], log_prior[part], beta)))
    posterior = store.finish()
    assert (to_numpy(posterior.log_evidence)[1:3] == -np.inf).all()
    np.testing.assert_array_equal(to_numpy(posterior.kept_mass)[1:3], 0)
    responsibilities = to_numpy(store.responsibilities(0, 500))
    np.testing.assert_allclose(responsibilities.sum(axis=0), [1, 0, 0, 1], rtol=1e-5)
    assert not responsibilities[300:].any()
    assert responsibilities[5, 3] == 0
    assert to_numpy(store.row_mass())[300:].sum() == 0
    np.testing.assert_allclose(matrix_of(store.kept()), responsibilities, rtol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_a_maximum_that_rises_by_thousands_is_mended(device: Any) -> None:
    rng = np.random.default_rng(11)
    scores = (np.arange(40) * 1000.0)[:, None] + rng.normal(size=(40, 8))
    scores[30:] = scores[30] - rng.uniform(0, 15, (10, 8))
    scores = scores.astype(np.float32)
    log_prior = np.full(40, -math.log(40))
    p, log_evidence = reference_posterior(scores, log_prior, 1.0)
    for tile in (1, 7, 40):
        store = filled(device, scores, log_prior, np.ones(8, np.float32), tile=tile, kept_mass=1)
        np.testing.assert_allclose(to_numpy(store.finish().log_evidence), log_evidence, rtol=1e-6)
        found = to_numpy(store.responsibilities(0, 40))
        near = p > p.max(axis=0) * math.exp(-16)
        np.testing.assert_allclose(found[near], p[near], rtol=0.015)


@pytest.mark.parametrize("device", DEVICES)
def test_tiles_that_came_before_change_no_bit(device: Any) -> None:
    scores, log_prior, beta = problem(700, 90)
    results = []
    # 230 rows: parts of 256 rows, whose probabilities are summed, meet two tiles.
    for order in (1, -1):
        store = ScoreStore(*scores.shape, device)
        store.refer(to_device(scores[0], device), to_device(beta, device))
        for first in list(range(0, 700, 230))[::order]:
            part = slice(first, first + 230)
            store.add(first, *(to_device(x, device) for x in (scores[part], log_prior[part], beta)))
        results.append([to_numpy(x) for x in (store.responsibilities(0, 700), store.finish().best_score)])
        results[-1].append(to_numpy(store.finish().log_evidence).astype(np.float32))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_threads_change_no_bit() -> None:
    import numba

    scores, log_prior, beta = problem(900, 700)
    before = numba.get_num_threads()
    results = []
    try:
        for n_threads in {1, before}:
            numba.set_num_threads(n_threads)
            store = filled("cpu", scores, log_prior, beta)
            posterior = store.finish()
            results.append(
                (posterior.log_evidence, posterior.entropy, store.responsibilities(0, 900), store.row_mass())
            )
    finally:
        numba.set_num_threads(before)
    for one, other in zip(results[0], results[-1], strict=True):
        np.testing.assert_array_equal(one, other)


def test_wrong_tiles_are_refused() -> None:
    scores, log_prior, beta = problem(10, 4)
    store = ScoreStore(10, 4)
    with pytest.raises(OrienteerError, match="no scores"):
        store.finish()
    with pytest.raises(OrienteerError, match="do not lie within"):
        store.add(5, scores, log_prior, beta)
    with pytest.raises(OrienteerError, match="needs shapes"):
        store.add(0, scores[:, :2], log_prior, beta)
    store.add(0, scores[:5], log_prior[:5], beta)
    with pytest.raises(OrienteerError, match="come twice"):
        store.add(4, scores[:5], log_prior[:5], beta)
    store.finish()
    with pytest.raises(OrienteerError, match="after the batch was finished"):
        store.add(5, scores[5:], log_prior[5:], beta)
    with pytest.raises(OrienteerError, match="cannot be kept"):
        ScoreStore(10, 4, kept_mass=0)


def test_to_put_tiles_together_takes_no_more_memory_than_is_planned() -> None:
    """36 bytes of a frame in a tile, beside the 20 of top and sums that each tile has left there."""
    n_tiles, tile_rows, n_frames = 1000, 4, 100
    store = ScoreStore(n_tiles * tile_rows, n_frames)
    scores, prior = np.zeros((tile_rows, n_frames), np.float32), np.zeros(tile_rows, np.float32)
    for first in range(0, n_tiles * tile_rows, tile_rows):
        store.add(first, scores, prior, 1.0)
    tracemalloc.start()
    try:
        store.finish()
        most_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most_bytes < 36 * n_tiles * n_frames + 2**20
