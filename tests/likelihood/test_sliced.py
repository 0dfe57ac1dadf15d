"""Operands straight from a volume are those of its slices."""

import numba
import numpy as np
import pytest

from orienteer.likelihood.expected import expand_slices
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.panels import Panels
from orienteer.likelihood.pixel_model import PixelModel
from orienteer.likelihood.product import SparseProduct
from orienteer.orientation.quaternion import random_uniform, to_matrix
from orienteer.slicing.patches import PointPatches
from orienteer.slicing.turned import TurnedVolume
from orienteer.source.patterns import Patterns

KINDS = ["poisson", "negative_binomial", "gaussian"]
P, S = 700, 611


def make_problem(n_rows: int) -> tuple[TurnedVolume, PixelModel, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    volume = rng.gamma(2.0, 0.5, (15, 15, 15)).astype(np.float32)
    volume[3:6] = 0  # empty voxels are floored alike
    points = PointPatches.of(rng.uniform(-8, 8, (P, 3)).astype(np.float32))  # some lie outside
    matrices = np.ascontiguousarray(to_matrix(random_uniform(n_rows, rng)).astype(np.float32))
    correction = rng.uniform(0.1, 2, P).astype(np.float32)
    pixels = PixelModel(correction, correction, S, rng.uniform(0, 0.1, P).astype(np.float32))
    centre, dispersion = rng.normal(size=S).astype(np.float32), rng.uniform(0, 1, P).astype(np.float32)
    return TurnedVolume(volume, points, matrices), pixels, centre, dispersion


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_rows", [1, 16, 17, 64, 130])
def test_an_operand_made_from_the_volume_is_that_of_its_slices(kind: str, n_rows: int) -> None:
    turned, pixels, centre, dispersion = make_problem(n_rows)
    slices = turned.slices(by_pixel=True)
    arguments = pixels, centre, dispersion, 1.3, True
    operand, offsets = expand_slices(kind, slices, *arguments)  # type: ignore[arg-type]
    panels, same_offsets = expand_slices(kind, turned, *arguments)  # type: ignore[arg-type]
    assert isinstance(panels, Panels)
    width = panels.array.shape[2]
    together = np.concatenate(list(panels.array), axis=1)[:, :n_rows]
    assert panels.array.shape[1:] == (S, width)
    np.testing.assert_allclose(together, operand, rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(same_offsets, offsets, rtol=1e-6)
    signal = (slices[:S].astype(np.float64) * pixels.correction[:S, None]).sum(axis=0)
    np.testing.assert_allclose(panels.signal, signal, rtol=1e-6)

    frames = np.random.default_rng(1).poisson(0.2, (9, P))
    product = SparseProduct(FrameBatch.prepare(Patterns(frames), np.arange(P), S, "cpu", "sparse"))
    np.testing.assert_allclose(product.scores(panels), product.scores(operand), rtol=1e-5, atol=1e-4)


def test_threads_change_no_bit() -> None:
    turned, pixels, centre, dispersion = make_problem(100)
    before = numba.get_num_threads()
    results = []
    try:
        for threads in (1, before):
            numba.set_num_threads(threads)
            panels, offsets = expand_slices("poisson", turned, pixels, centre, dispersion, 1.0, True)
            results.append((panels.array.copy(), offsets, panels.signal))
    finally:
        numba.set_num_threads(before)
    for one, other in zip(*results, strict=True):
        assert np.array_equal(one, other)
