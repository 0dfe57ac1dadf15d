"""The order in which a GPU takes the pixels: every pixel once, in patches."""

import ast
from pathlib import Path

import numpy as np
import pytest

import orienteer.fourier
from orienteer.fourier.interpolate import patch_order


@pytest.mark.parametrize("shape", [(16, 24), (13, 21), (3, 7, 10), (1, 5)])
def test_every_pixel_comes_once_also_on_ragged_edges_and_with_pixels_missing(shape: tuple[int, ...]) -> None:
    pixels = np.flatnonzero(np.random.default_rng(1).random(np.prod(shape)) < 0.8)
    order = patch_order(pixels, shape)
    assert order is not None
    assert order.dtype == np.int32
    np.testing.assert_array_equal(np.sort(order), np.arange(len(pixels)))


def test_a_warp_covers_a_patch() -> None:
    order = patch_order(np.arange(16 * 24), (16, 24))
    assert order is not None
    for warp in order.reshape(-1, 32):
        row, column = np.divmod(warp, 24)
        assert np.ptp(row) == 3
        assert np.ptp(column) == 7


def test_frames_without_rows_keep_their_order() -> None:
    assert patch_order(np.arange(20), (20,)) is None


def test_nothing_here_needs_to_know_what_a_particle_is() -> None:
    """Volumes are transformed by the same code as particles."""
    for path in Path(orienteer.fourier.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                assert not node.module.startswith("orienteer.particle"), path
