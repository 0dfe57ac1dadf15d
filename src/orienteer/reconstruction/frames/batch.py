"""A batch of frames on the device, in groups of similar fluence."""

from dataclasses import dataclass
from typing import Any

from orienteer.compute.arrays import Array
from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.product import Product


@dataclass(frozen=True, eq=False)
class Group:
    """Frames of similar fluence within a batch: columns ``columns`` of the scores.

    fluence : their mean; is_even : whether all have exactly this fluence, so that scores need no correction.
    """

    columns: slice
    frames: FrameBatch
    product: Product
    fluence: float
    is_even: bool = True


@dataclass(frozen=True, eq=False)
class Batch:
    """D frames on the device, sorted into groups of similar fluence.

    places : (D,) places of the frames in the data set.
    fluence : (D,) float64 on the device, of each frame.
    weight : (D,) float32 on the device, how much each frame counts in the merge; None: all the same.
    counted : (D,) bool on the device, frames that add to the mass of rows; None: all.
    """

    places: Any
    groups: tuple[Group, ...]
    fluence: Array
    weight: Array | None = None
    counted: Array | None = None

    def __len__(self) -> int:
        return len(self.places)

    @property
    def by_pixel(self) -> bool:
        """The layout in which the products want their operands."""
        return self.groups[0].product.by_pixel
