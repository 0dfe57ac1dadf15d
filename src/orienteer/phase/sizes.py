"""Sizes that contradict each other; usually one was given in nm or 1/nm instead of A or 1/A."""

from orienteer.errors import OrienteerError
from orienteer.volume.unit_mistakes import unit_mistake

# Least ratio of the box to the particle's diameter; in a smaller box the autocorrelation folds onto itself.
LEAST_BOX = 1.5
# Least number of speckles from the centre to the edge of the data; fewer show nothing but the size.
LEAST_SPECKLES = 1.5
# Diameters that differ by more than this factor are not those of one particle.
_DIFFERENT = 2.0
# Smallest and largest particles that single X-ray pulses can show, A.
_SMALLEST_A, _LARGEST_A = 8.0, 1e5


def refuse_impossible_sizes(diameter_A: float, box_A: float, edge_A: float, seen_A: float = 0.0) -> None:
    """Refuse a particle that does not fit its box, or that is too small for the resolution of the data.

    box_A : 1 / voxel of the intensity.
    edge_A : full-period resolution of the outermost measured voxel.
    seen_A : diameter seen in the intensity itself; 0 if none is seen.
    """
    mistake = unit_mistake(diameter_A, seen_A)
    if box_A < LEAST_BOX * diameter_A:
        raise OrienteerError(
            f"the voxels of the intensity are too coarse: they make a box of {box_A:.4g} A for a particle of "
            f"{diameter_A:.4g} A.",
            mistake
            or "Reconstruct with more oversampling (2 voxels per speckle), or give a smaller diameter.",
        )
    if diameter_A < LEAST_SPECKLES * edge_A:
        raise OrienteerError(
            f"the intensity ends at a resolution of {edge_A:.4g} A, which shows nothing of a particle of "
            f"{diameter_A:.4g} A.",
            mistake or "Give a larger diameter, or none, and the voxel size in 1/A.",
        )


def size_doubts(diameter_A: float, is_given: bool, seen_A: float) -> list[str]:
    """Doubts about the size of a particle, in sentences."""
    said = []
    if is_given and seen_A and not 1 / _DIFFERENT < diameter_A / seen_A < _DIFFERENT:
        words = f"The diameter that was given, {diameter_A:.3g} A, is not that of the autocorrelation, "
        said.append(f"{words}{seen_A:.3g} A. {unit_mistake(diameter_A, seen_A)}".strip())
    if not _SMALLEST_A <= diameter_A <= _LARGEST_A:
        said.append(f"No single particle has a diameter of {diameter_A:.3g} A: is the voxel size in 1/A?")
    return said
