"""What the halves are said to agree about must be in both, not leak into both."""

import numpy as np

from orienteer.compare.shells import shell_index
from orienteer.reconstruction.model.autocorrelation import WienerFilter

_N = 61


def test_shells_without_signal_beside_shells_with_it_do_not_agree() -> None:
    rng = np.random.default_rng(1)
    axis = np.arange(_N) - _N // 2
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    body = rng.normal(size=(_N,) * 3) * (x**2 + y**2 + z**2 <= 6**2)
    speckles = np.abs(np.fft.fftshift(np.fft.fftn(body))) ** 2
    shell = np.where(shell_index(_N) < 0, _N, shell_index(_N))
    signal = np.where(shell <= 15, speckles / speckles.mean() - 1, 0.0)
    halves = []
    for _ in range(2):
        noise = rng.normal(size=signal.shape)
        noise = (noise + noise[::-1, ::-1, ::-1]) / 2**0.5
        halves.append((1 + signal + 0.5 * noise).astype(np.float32))
    found = WienerFilter(halves[0], halves[1], np.ones(signal.shape)).correlation
    assert found[3:15].min() > 0.9
    assert np.abs(found[18:29]).max() < 0.5
    assert np.abs(found[18:29]).mean() < 0.15
