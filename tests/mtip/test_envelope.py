"""What an intensity over its envelope leaves beyond the diameter of the particle."""

import numpy as np

from orienteer.mtip.envelope import envelope_of
from orienteer.reconstruction.model.radial_profile import RadialProfile


def test_the_transform_of_a_nearly_round_particle_ends_at_its_diameter() -> None:
    """The rings of a ball are narrower than speckles; over its radial mean, their dark places would shine."""
    diameter, edge, voxel = 200.0, 45, 1 / 800.0
    axis = (np.arange(edge) - edge // 2) * voxel
    q = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1)
    length = np.sqrt((q**2).sum(-1))
    u = np.maximum(np.pi * diameter * length, 1e-6)
    ball = 3 * (np.sin(u) - u * np.cos(u)) / u**3
    bump = 0.05 * np.exp(2j * np.pi * q @ [50.0, 30.0, 20.0])
    intensity = np.abs(ball + bump) ** 2
    shell = np.rint(length / voxel).astype(int)
    mean = np.bincount(shell.ravel(), intensity.ravel()) / np.bincount(shell.ravel())
    profile = RadialProfile(np.arange(len(mean)) * voxel, np.log(mean))
    window = np.clip(1.5 - 2 * length / (edge * voxel), 0, 1)  # no edges that ring

    def beyond(own: RadialProfile) -> float:
        relative = (intensity / own(length) - 1) * window
        power = np.abs(np.fft.fftn(np.fft.ifftshift(relative))) ** 2
        distance = np.fft.ifftshift(length) / (edge * voxel**2)
        return float(power[distance > 1.1 * diameter].sum() / power.sum())

    smooth = beyond(envelope_of(profile, diameter))
    assert smooth < 0.02
    assert smooth < 0.5 * beyond(profile)


def test_an_envelope_that_is_smooth_already_stays_as_it_is() -> None:
    radius = np.linspace(0, 0.05, 101)
    slow = RadialProfile(radius, -1e-3 * np.cos(np.pi * radius / 0.05))
    same = envelope_of(slow, 200.0)
    assert np.allclose(same(radius), slow(radius), rtol=1e-4)
    assert same.radius_inv_A[0] == 0
    assert same.radius_inv_A[-1] == radius[-1]
