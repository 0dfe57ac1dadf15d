"""A volume and orientations, not yet sliced: users make the slices, or operands directly from the volume."""

from dataclasses import dataclass, field

from orienteer.compute.arrays import Array
from orienteer.slicing.patches import PointPatches
from orienteer.slicing.trilinear import slice_volume


@dataclass(frozen=True, eq=False)
class TurnedVolume:
    """Slices that are yet to be made, with the arguments of :func:`slice_volume`.

    volume : (n, n, n) float32; points : P pixels in voxels; matrices : (T, 3, 3) float32.
    memory : buffers that users keep from tile to tile.
    """

    volume: Array
    points: PointPatches
    matrices: Array
    memory: dict[tuple[int, ...], Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.matrices)

    def slices(self, by_pixel: bool, out: Array | None = None) -> Array:
        """The slices, (T, P) or (P, T) float32."""
        return slice_volume(self.volume, self.points, self.matrices, by_pixel, out)
