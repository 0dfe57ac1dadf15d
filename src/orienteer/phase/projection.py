"""The projection onto the data and the update of the iterate, for many starts at once; chooses the kernels.

A step is two FFTs and two passes over memory: one gives every Fourier voxel its modulus, the other updates
the iterate.  Nothing else is read or written, so on a GPU a step costs little more than its FFTs.
"""

from pathlib import Path

import numpy as np

from orienteer.compute.arrays import Array, is_on_gpu
from orienteer.compute.kernels import load_kernels
from orienteer.compute.machine import usable_cores
from orienteer.phase.data import PhasingData

_AXES = (1, 2, 3)
_THREADS = 256
_BLOCKS = 1024


def project_modulus(density: Array, background: Array, data: PhasingData) -> Array:
    """The nearest densities (B, n, n, n) float32 whose transforms have the amplitudes of the data.

    Voxels held out or never measured keep their values; those in the hole keep them up to their bound.

    density : (B, n, n, n) float32; background : (B,) float32, subtracted from the intensity first.
    """
    n = data.n
    scale = np.float32(1 / float(n) ** 3)  # saves the inverse FFT a pass for its normalisation
    if is_on_gpu(density):
        from cupyx.scipy.fft import irfftn, rfftn

        transform = rfftn(density, axes=_AXES)
        starts, size = transform.shape[0], transform[0].size
        kernel = load_kernels(Path(__file__).with_name("projection.cu")).get_function("project_modulus")
        blocks = min(_BLOCKS, -(-size // _THREADS))
        kernel((blocks, starts), (_THREADS,), (transform, data.target, background, scale, np.int64(size)))
        return irfftn(transform, s=(n, n, n), axes=_AXES, norm="forward", overwrite_x=True)
    from scipy.fft import irfftn, rfftn

    from orienteer.phase import _projection_numba as twin

    workers = usable_cores()
    transform = rfftn(density, axes=_AXES, workers=workers)
    parts = transform.view(np.float32).reshape(len(transform), -1, 2)
    twin.project_modulus(parts, data.target.ravel(), background, scale)
    return irfftn(transform, s=(n, n, n), axes=_AXES, norm="forward", overwrite_x=True, workers=workers)


def relax(
    density: Array, projected: Array, support: Array, keep: float, add: float, reflect: float, positive: bool
) -> None:
    """Update the iterate x, given its projection p onto the data, in place.

    In voxels of the support where t = p + reflect (p - x) has an allowed sign, x becomes p; elsewhere it
    becomes keep x + add p.  All methods except the general difference map have this form.

    density, projected : (B, n, n, n) float32; support : (B, n, n, n) bool.
    """
    numbers = (np.float32(keep), np.float32(add), np.float32(reflect))
    starts, size = density.shape[0], density[0].size
    if is_on_gpu(density):
        kernel = load_kernels(Path(__file__).with_name("projection.cu")).get_function("relax")
        blocks = min(_BLOCKS, -(-size // _THREADS))
        arguments = (density, projected, support, *numbers, np.bool_(positive), np.int64(size))
        kernel((blocks, starts), (_THREADS,), arguments)
        return
    from orienteer.phase import _projection_numba as twin

    shape = (starts, size)
    twin.relax(density.reshape(shape), projected.reshape(shape), support.reshape(shape), *numbers, positive)
