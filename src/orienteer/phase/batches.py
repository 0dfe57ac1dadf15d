"""Many starts of a phasing: as many at once as memory allows, and the memory that all need in the end."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import import_cupy
from orienteer.compute.machine import memory_GiB
from orienteer.compute.words import counted
from orienteer.errors import OrienteerError
from orienteer.phase.course import Course
from orienteer.phase.data import PhasingData
from orienteer.phase.schedule import Phase
from orienteer.phase.state import PhaseState

# Copies of a density that a start needs during phasing, and when starts are compared at the end (measured).
_COPIES_ON_THE_WAY, _COPIES_IN_THE_END = 8, 11
# Share of the free memory that a batch may take, and that all starts may take at the end.
_SHARE_OF_A_BATCH, _SHARE_IN_THE_END = 0.4, 0.8


def run_batches(
    course: Course,
    phases: Sequence[Phase],
    numbers: Sequence[int],
    volumes: NDArray[np.float64],
    seed: int,
    tell: Callable[[int], None],
) -> Iterator[PhaseState]:
    """Starts after a schedule, batch by batch, with densities that obey the constraints.

    numbers : (B,) of the starts; volumes : (B,) final voxels of each support.
    tell : called with the number of iterations done, summed over starts.
    """
    size, done = starts_at_once(course.data, len(numbers)), 0
    for first in range(0, len(numbers), size):
        batch = numbers[first : first + size]
        state = course.start(batch, volumes[first : first + size], seed)

        def heard(each: int, before: int = done, number: int = len(batch)) -> None:
            tell(before + each * number)

        state = course.run(state, phases, heard)
        state.density[...] = course.estimate(state)
        course.symmetrise(state)
        done += len(batch) * sum(phase.count for phase in phases)
        yield state


def starts_at_once(data: PhasingData, starts: int) -> int:
    """Number of starts that fit into memory at once."""
    return int(
        np.clip(_SHARE_OF_A_BATCH * _free_bytes(data) / (_COPIES_ON_THE_WAY * _bytes_of(data)), 1, starts)
    )


def refuse_too_many_starts(data: PhasingData, starts: int) -> float:
    """Memory in GiB that all starts need in the end; refuses, before any work, more than is available."""
    each, free = _COPIES_IN_THE_END * _bytes_of(data), _SHARE_IN_THE_END * _free_bytes(data)
    needed = starts * each
    if needed > free:
        fewer = f"Ask for up to {int(free / each)} starts, or phase" if free >= each else "Phase"
        raise OrienteerError(
            f"{counted(starts, 'start')} of {data.n}^3 voxels take {needed / 2**30:.3g} GiB when compared, "
            f"but only {free / 2**30:.3g} GiB may be used here.",
            f"{fewer} to a coarser resolution.",
        )
    return needed / 2**30


def _bytes_of(data: PhasingData) -> float:
    """Bytes of one density, in float32."""
    return 4.0 * data.n**3


def _free_bytes(data: PhasingData) -> float:
    """Free memory in bytes of the device that holds the data."""
    if data.device == "cpu":
        return memory_GiB()[1] * 2**30
    cupy = import_cupy()
    assert cupy is not None
    return float(cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes())
