"""Dragonfly's quaternions mean the same orientation as ours."""

import numpy as np
from numpy.testing import assert_allclose

from orienteer.orientation.dragonfly import to_dragonfly
from orienteer.orientation.quaternion import random_uniform, rotate, to_matrix


def dragonfly_matrix(quaternions: np.ndarray) -> np.ndarray:
    """Dragonfly's matrix (..., 3, 3), written out from its definition: detector q to model coordinate."""
    a, b, c, d = (quaternions[..., i] for i in range(4))
    rows = [
        [1 - 2 * (c * c + d * d), 2 * (b * c + a * d), 2 * (b * d - a * c)],
        [2 * (b * c - a * d), 1 - 2 * (b * b + d * d), 2 * (c * d + a * b)],
        [2 * (b * d + a * c), 2 * (c * d - a * b), 1 - 2 * (b * b + c * c)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def test_dragonfly_samples_the_model_where_the_turned_particle_is_sampled() -> None:
    """Model coordinate M q with Dragonfly's matrix M equals R^T q with our R of the same quaternion."""
    orientations = random_uniform(20, seed=1)
    detector_q = np.random.default_rng(2).normal(size=(50, 3))
    theirs = np.einsum("kij,pj->kpi", dragonfly_matrix(to_dragonfly(orientations)), detector_q)
    ours = np.einsum("kji,pj->kpi", to_matrix(orientations), detector_q)
    assert_allclose(theirs, ours, atol=1e-14)


def test_an_object_turned_by_our_quaternion_is_read_back_by_dragonflys_matrix() -> None:
    """Three unequal blobs: the transform of the turned blobs at q is that of the still blobs at M q."""
    blobs = np.array([[10.0, 0, 0], [0, 6.0, 1.0], [-3.0, 2.0, 8.0]])
    charge = np.array([1.0, 2.0, 3.5])
    detector_q = np.random.default_rng(3).normal(scale=0.05, size=(40, 3))
    for q in random_uniform(20, seed=4):
        of_turned = np.exp(2j * np.pi * detector_q @ rotate(q, blobs).T) @ charge
        model_at = detector_q @ dragonfly_matrix(q).T
        assert_allclose(np.exp(2j * np.pi * model_at @ blobs.T) @ charge, of_turned, atol=1e-10)
