"""A complete comparison of two volumes: alignment, correlation curve, resolution, and remarks."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import orienteer
from orienteer.compare.alignment import align_intensities
from orienteer.compare.criteria import CRITERIA, Resolution, resolution_at, threshold_curve
from orienteer.compare.densities import DensityAlignment, align_densities
from orienteer.compare.fsc import Fsc
from orienteer.compare.intensity_grid import intensities_on_one_grid
from orienteer.compare.mask import filled_share, soft_mask
from orienteer.compare.phase_randomisation import MaskedFsc, masked_fsc
from orienteer.compare.resampling import resample
from orienteer.compare.scale import better_scale, refuse_other_size
from orienteer.compare.shells import radial_mean
from orienteer.compare.structure_density import density_like, intensity_of
from orienteer.compute.arrays import Array, array_namespace, is_on_gpu
from orienteer.errors import OrienteerError
from orienteer.particle.base import Particle
from orienteer.volume.volume import Volume

# Hands whose correlations differ by less than this count as equal.
_SAME_HAND = 0.002
# Densities that correlate by less than this do not show the same particle, in either hand.
_FITS = 0.5


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """How well two volumes agree.

    kind : "densities" or "intensities".
    correlation : of densities over all voxels; of intensities the mean over shells of the correlation of
        their deviations from the radial profile.
    rotation : (4,) quaternion that turns the second onto the first.
    hand, shift_A, other_hand_correlation : as in ``DensityAlignment``; None for intensities, which have none.
    curve : the correlation of every shell, corrected for the mask if there is one.
    threshold : (S,), threshold of the criterion at every shell.
    resolution : at the chosen criterion; resolutions : at all criteria.
    masked : all curves under the mask; None without a mask.
    reference, aligned : the first volume, and the second aligned with it, on one grid.
    remarks : decisions that were made, and warnings, in sentences.
    """

    kind: str
    correlation: float
    rotation: NDArray[np.float64]
    hand: int | None
    shift_A: NDArray[np.float64] | None
    other_hand_correlation: float | None
    curve: Fsc
    criterion: str
    threshold: NDArray[np.float64]
    resolution: Resolution
    resolutions: Mapping[str, Resolution]
    masked: MaskedFsc | None
    reference: Volume
    aligned: Volume
    remarks: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<Comparison of {self.kind}: correlation {self.correlation:.3f}. {self.resolution.words}>"

    def show(self, title: str = "") -> Any:
        """The picture of the curve, and of both volumes after alignment."""
        return orienteer.show(self, title)  # through the top level: plot is downstream of compare

    def as_report(self) -> dict[str, Any]:
        """Everything except the volumes, as plain names and numbers."""
        curve = {
            "q_inv_A": self.curve.q_inv_A,
            "correlation": self.curve.correlation,
            "n_voxels": self.curve.n_voxels,
            "threshold": self.threshold,
        }
        if self.masked is not None:
            curve |= {
                name: getattr(self.masked, name).correlation for name in ("masked", "unmasked", "random")
            }
        return {
            "kind": self.kind,
            "correlation": self.correlation,
            "criterion": self.criterion,
            "resolution_A": self.resolution.resolution_A,
            "resolution": self.resolution.words,
            "resolutions_A": {name: found.resolution_A for name, found in self.resolutions.items()},
            "rotation": self.rotation,
            "hand": self.hand,
            "shift_A": self.shift_A,
            "other_hand_correlation": self.other_hand_correlation,
            "remarks": list(self.remarks),
            "curve": curve,
        }


def compare(
    reference: Volume | Particle, moving: Volume | Particle, *, criterion: str | float = "0.5",
    mask: Volume | bool = False, symmetry_order: int = 1, seed: int = 0,
    near: NDArray[np.float64] | None = None,
) -> Comparison:  # fmt: skip
    """Align two volumes, or a volume and a known particle, and compare them.

    reference, moving : two densities or two intensities; a particle becomes a volume of the other's kind.
    criterion : of the resolution: "0.5", "0.143", "half-bit" or a number.
    mask : for densities.  True makes a mask around the particle; a volume is used as the mask.  The curve is
        then corrected for what the mask adds.
    symmetry_order : of the symmetry imposed on both; it raises the half-bit curve.
    seed : of the random phases of the mask correction.
    near : (4,), a rotation of the second that is known to within half a speckle; None: it is searched for.

    >>> x = np.arange(-8, 8)
    >>> values = np.add.outer(np.add.outer(x**2, 2 * x**2), x**2 / 2) < 8
    >>> body, turned = Volume(values, voxel_size=4.0), Volume(values.transpose(1, 2, 0), voxel_size=4.0)
    >>> found = compare(body, turned)
    >>> found  # doctest: +ELLIPSIS
    <Comparison of densities: correlation 0.99... The curve stays above 0.5 up to the edge, ...>
    """
    volumes = [given for given in (reference, moving) if isinstance(given, Volume)]
    if not volumes:
        raise OrienteerError(
            "neither of the two is a volume.", "Give at least one density or intensity, which sets the grid."
        )
    space = volumes[0].space
    if any(volume.space != space for volume in volumes):
        kinds = ("a density", "an intensity") if space == "real" else ("an intensity", "a density")
        raise OrienteerError(
            f"the first is {kinds[0]} and the second {kinds[1]}.",
            "Phase the intensity first (orienteer phase), or compare the intensities.",
        )
    if space == "reciprocal":
        if mask is not False:
            raise OrienteerError("a mask is for densities; these are intensities.", "Leave the mask out.")
        like = volumes[0]
        return _compare_intensities(_intensity(reference, like), _intensity(moving, like), criterion, near)
    refuse_other_size(reference, moving)
    first, second = (_density(x, volumes[0]) for x in (reference, moving))
    found = align_densities(first, second, near=near)
    remarks = [*found.remarks, *_on_hand(found), *_on_size(found, second, reference, moving)]
    masked, share = None, _share_of_box(found)
    curve = found.fsc
    if mask is not False:
        values = _given_mask(found, mask) if isinstance(mask, Volume) else _made_mask(found)
        share = filled_share(values)
        voxel_A = found.fsc.voxel_size_A
        masked = masked_fsc(found.reference.values, found.turned.values, values, voxel_A, seed=seed)
        curve = masked.corrected
        remarks.append(f"The mask holds {100 * share:.3g} % of the box; the curve is corrected for it.")
    threshold, own, all_of_them = _resolutions(curve, criterion, share, symmetry_order)
    return Comparison(
        "densities", found.correlation, found.quaternion, found.hand, found.shift_A,
        found.other_hand_correlation, curve, str(criterion), threshold, own, all_of_them, masked,
        found.reference, found.turned, tuple(remarks),
    )  # fmt: skip


def _compare_intensities(
    reference: Volume, moving: Volume, criterion: str | float, near: NDArray[np.float64] | None
) -> Comparison:
    first, second, remarks = intensities_on_one_grid(reference, moving)
    xp = array_namespace(first.values)
    known = [radial_mean(xp.astype(~xp.isnan(v.values), xp.float64)) for v in (first, second)]
    common = np.flatnonzero(np.minimum(*known)[1:] > 0.5) + 1
    if not len(common):
        raise OrienteerError(
            "there is no shell on which both intensities were measured.",
            "Compare intensities that overlap in resolution.",
        )
    found = align_intensities(
        first.values, second.values, first_shell=int(common[0]), last_shell=int(common[-1]), near=near
    )
    n, voxel = first.shape[0], first.voxel_size[0]
    shells = found.shells
    curve = Fsc(shells.radius * voxel, shells.correlation, shells.n_voxels // 2, 1 / (n * voxel))
    # The innermost shells have few voxels and hardly any speckles: if they disagree, begin further out.
    inner = [s for s in common[: max(1, len(common) // 3)] if shells.correlation[s] >= 0.5]
    first_shell = int(inner[0] if inner else common[0])
    threshold, own, all_of_them = _resolutions(curve, criterion, 1.0, 1, first_shell)
    return Comparison(
        "intensities", shells.mean(common), found.quaternion, None, None, None, curve, str(criterion),
        threshold, own, all_of_them, None, first, second.with_values(found.turned), remarks,
    )  # fmt: skip


def _resolutions(
    curve: Fsc, criterion: str | float, share: float, order: int, first_shell: int = 1
) -> tuple[NDArray[np.float64], Resolution, dict[str, Resolution]]:
    """The threshold and the resolution of the chosen criterion, and the resolutions of all criteria."""
    return (
        threshold_curve(curve, criterion, share, order),
        resolution_at(curve, criterion, share, order, first_shell),
        {name: resolution_at(curve, name, share, order, first_shell) for name in CRITERIA},
    )


def _density(given: Volume | Particle, like: Volume) -> Volume:
    return given if isinstance(given, Volume) else _beside(density_like(given, like), like)


def _intensity(given: Volume | Particle, like: Volume) -> Volume:
    if isinstance(given, Volume):
        return given
    return _beside(intensity_of(given, max(like.shape), max(like.voxel_size)), like)


def _beside(volume: Volume, like: Volume) -> Volume:
    """The volume on the device of ``like``."""
    values = array_namespace(like.values).asarray(volume.values) if is_on_gpu(like.values) else volume.values
    return replace(volume, values=values)


def _on_hand(found: DensityAlignment) -> list[str]:
    if found.correlation > _FITS and abs(found.correlation - found.other_hand_correlation) < _SAME_HAND:
        return ["Both hands fit equally well: at this resolution the particle is its own mirror image."]
    return []


def _on_size(
    found: DensityAlignment, moving: Volume, first: Volume | Particle, second: Volume | Particle
) -> list[str]:
    """A sentence if the two would fit much better at another size."""
    fit = better_scale(found, moving)
    if fit is None:
        return []
    gain = f"the correlation would be {fit.correlation:.2f} instead of {fit.before:.2f}"
    if isinstance(second, Volume) and not isinstance(first, Volume):
        voxel_A = fit.scale * max(second.voxel_size)
        return [f"The voxel size seems wrong: with voxels of {voxel_A:.4g} A {gain}."]
    if isinstance(first, Volume) and not isinstance(second, Volume):
        voxel_A = max(first.voxel_size) / fit.scale
        return [f"The voxel size seems wrong: with voxels of {voxel_A:.4g} A {gain}."]
    return [
        f"One of the voxel sizes seems wrong: with the second density {fit.scale:.4g} times as large {gain}."
    ]


def _made_mask(found: DensityAlignment) -> Array:
    """A mask around the particle, from both densities."""
    xp = array_namespace(found.reference.values)
    both = sum(v.values / (float(xp.std(v.values)) or 1.0) for v in (found.reference, found.turned))
    return soft_mask(both, found.fsc.voxel_size_A)


def _share_of_box(found: DensityAlignment) -> float:
    """Share of the box that the particle fills; 1 if it does not stand out from the box."""
    try:
        return filled_share(_made_mask(found))
    except OrienteerError:
        return 1.0


def _given_mask(found: DensityAlignment, mask: Volume) -> Array:
    """The user's mask on the grid of the comparison, centre voxel on centre voxel."""
    values = _beside(mask, found.reference).values
    xp = array_namespace(values)
    values = xp.where(xp.isnan(values), xp.asarray(0, dtype=values.dtype), values)
    values = resample(values, mask.voxel_size, found.reference.shape[0], found.fsc.voxel_size_A)
    if not bool(xp.any(values > 0)):
        raise OrienteerError(
            "the mask is 0 everywhere in the box of the densities.", "Give another mask, or --mask auto."
        )
    return xp.astype(xp.clip(values, 0.0, 1.0), xp.float32)
