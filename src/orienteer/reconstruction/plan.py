"""Plan a run before it starts: device, layout, tiles, batches, memory, time."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from orienteer.compute.arrays import DeviceName, import_cupy
from orienteer.compute.machine import memory_GiB, usable_cores
from orienteer.compute.words import counted, time_in_words
from orienteer.errors import OrienteerError
from orienteer.likelihood.frames import Layout
from orienteer.likelihood.reading_frames import LARGEST_HALF_COUNT
from orienteer.orientation.six_hundred_cell import MOST_DIVISIONS, n_rotations

# Per second, and per core or card: multiply-adds, dense and sparse; points sliced and inserted.
_CPU_RATES = {"dense": 2.5e10, "sparse": 5e9, "slice": 2.5e8, "insert": 7e7}
_GPU_RATES = {"dense": 2e14, "sparse": 1e12, "slice": 5e10, "insert": 2e10}
# Bytes per voxel: of a model (float32), and of the sums that frames are merged into (float64; on a GPU
# float32 four times).
_MODEL, _SUMS = 4, {"cpu": 24, "cuda": 48}
# Bytes per voxel of tables that are kept for a cube: its shells, twice on the CPU, and the distances of its
# transform.  On a GPU slicing also keeps a copy of each voxel beside its neighbours.
_TABLES = {"cpu": 14, "cuda": 35}
# Bytes per voxel while models are solved: for each model the sums of each half, their total and the solution;
# for the filter of two halves three cubes (on the CPU half of each), means, transforms and gains.
_SOLVING, _FILTERING = 64, {"cpu": 47, "cuda": 94}
# Bytes per row: matrix, quaternion, weight, prior, mass and offset, with the coarser grids that are kept.
_ROW = 120
# In the second pass of a search, few frames are compared with each row: tiles are larger by this factor.
_LARGER_TILES = {"cpu": 4, "cuda": 2}
# Arrays of a tile of rows that are held at once.  Over pixels: slices, operand, merged photons, and a copy
# of these in patches.  Over frames: responsibilities, those of a group, and its weights.
_BY_PIXEL, _BY_FRAME = 4, 3
# Share of the budget that the slices of a tile may take.
_SHARE_OF_TILES = 0.25
# Bytes per pixel of a frame while frames are judged, and the most pixels that are judged at once
# (frame_fit.py).
_JUDGED, _JUDGED_AT_ONCE = 34, 1 << 23
# Bytes per lit pixel: photons are listed by frame and by pixel.
_LISTED = 16
# Share of a card's free memory that frames may fill; larger sets stay in host memory and are copied in turn.
_SHARE_OF_DEVICE = 0.5
# Largest sum of squared counts of a frame for which operands may have a single float16 term.  Such an operand
# has an error of 1.4e-4 (rms) where it is half away from the mean.  The error of a score is that times the
# root of the sum of squared counts: 0.05 nat at five standard deviations.
LARGEST_HALF_SQUARE = 5000.0


# On the CPU, starting a tile costs as much as a few slices at refined poses.
_FEWEST_REFINED_ROWS = 512


@dataclass(frozen=True)
class Memory:
    """Bytes that a run holds on its device, by purpose.

    frames, poses, volumes : held all the time.
    scores, tiles : of one batch, while frames are oriented and merged.
    compression : while new models are solved from the sums.
    judging : while frames are compared with the new models.
    """

    frames: int = 0
    poses: int = 0
    volumes: int = 0
    scores: int = 0
    tiles: int = 0
    compression: int = 0
    judging: int = 0

    @property
    def total(self) -> int:
        """Most bytes held at once: the arrays of a batch are gone when models are solved."""
        held = self.frames + self.poses + self.volumes
        return held + max(self.scores + self.tiles, self.compression, self.judging)


@dataclass(frozen=True)
class Plan:
    """Sizes of everything that a run holds at once.

    layout : frames as arrays ("dense") or as lists of photons ("sparse").
    precision : of the products.
    tile_rows, fine_tile_rows : poses that are sliced and scored together: in a search of all poses, and in
        the second pass of a search from coarse to fine.
    batch_frames : frames that are scored against all poses at once, with the finest grid.
    score_bytes : memory of the scores of a batch.
    memory_GiB : most memory of everything together; ``memory`` lists its parts.
    seconds_per_iteration : predicted for the finest grid.
    frames_in_memory : whether the machine's memory holds all frames; else they are read in every iteration.
    frames_on_device : whether the device holds all frames; else batches are copied to it one after the other.
    """

    device: str
    layout: Layout
    precision: str
    n_frames: int
    n_pixels: int
    n_rotations: int
    edge_voxels: int
    tile_rows: int
    fine_tile_rows: int
    batch_frames: int
    score_bytes: int
    memory_GiB: float
    seconds_per_iteration: float
    frames_in_memory: bool = True
    frames_on_device: bool = True
    memory: Memory = Memory()

    def describe(self) -> list[tuple[str, str]]:
        """Names and values in words, for people to read."""
        return [
            ("device", self.device),
            ("frames", f"{self.n_frames:,} of {self.n_pixels:,} pixels, {self.layout}"),
            ("frames are kept", self._where_frames_are),
            ("precision", self.precision),
            ("orientations", f"{self.n_rotations:,} at the finest grid, {self.tile_rows:,} at a time"),
            ("batch", f"{counted(self.batch_frames, 'frame')} at a time"),
            ("volume", f"{self.edge_voxels}^3 voxels"),
            ("memory", f"{self.memory_GiB:.2f} GiB"),
            ("an iteration", f"about {time_in_words(self.seconds_per_iteration)} at the finest grid"),
        ]

    @property
    def _where_frames_are(self) -> str:
        if not self.frames_in_memory:
            return "on disk, read in every iteration"
        return "in memory" if self.frames_on_device else "in host memory, copied in every iteration"

    @property
    def refined_rows(self) -> int:
        """Slices in a tile while poses are refined, when every frame has slices of its own."""
        return max(self.tile_rows, _FEWEST_REFINED_ROWS)

    @property
    def order_of_sums(self) -> str:
        """In words, what determines the order and precision of sums, and so the last bits of the results."""
        return (
            f"{self.device}, {self.layout}, {self.precision}, {self.tile_rows} orientations and "
            f"{self.batch_frames} frames at a time"
        )

    def beyond(self, budget_GiB: float) -> str:
        """A warning if even one frame needs more memory for scores and slices than the limit; else empty.

        budget_GiB : the limit that the plan was made for; 0: none was set.
        """
        needed = (self.memory.scores + self.memory.tiles) / 2**30
        if self.batch_frames > 1 or not 0 < budget_GiB < needed:
            return ""
        least = needed / (1 - _SHARE_OF_TILES)
        step = 10.0 ** (math.floor(math.log10(least)) - 1)  # two digits, of which the last is rounded up
        return (
            f"memory_GiB = {budget_GiB:g} is too little for the scores and slices of a single frame; the run "
            f"exceeds the limit. Give {math.ceil(least / step) * step:.2g} or more."
        )

    def to_json(self) -> dict[str, Any]:
        """All numbers by name."""
        return asdict(self)


def make_plan(
    device: DeviceName, n_frames: int, n_pixels: int, n_rows: int, edge_voxels: int, lit_share: float,
    largest_count: float, is_counts: bool, budget_GiB: float = 0.0, frames_in_memory: bool = True,
    largest_square: float = np.inf, *, n_models: int = 1, n_halves: int = 1, stored_bytes: int = 0,
    n_ranks: int = 1, n_local: int = 1, free_GiB: float | None = None, is_deterministic: bool = False,
) -> Plan:  # fmt: skip
    """Choose layout, tile and batch so that everything fits in the budget.

    n_rows : rows of all models and junk classes together, with the finest grid.
    budget_GiB : for scores and slices; 0: a quarter of the free memory.
    largest_square : largest sum of squared counts of a frame; if it is small, operands are a single float16
        term.
    n_halves : sets of frames that are merged one after the other; two are filtered by what they agree about.
    stored_bytes : of the frames as they were read, if they stay in the memory of the device.
    n_ranks, n_local : ranks that share the work, and how many of them share the memory of this device.
    free_GiB : free memory of the device; None: as measured now.
    is_deterministic : whether rounding must not depend on which other frames there are.  With a single
        float16 term, a change of the last bit can grow to the whole error allowed for scores, and ranks drift
        apart.
    """
    on_gpu = device == "cuda"
    rates = _GPU_RATES if on_gpu else {k: v * usable_cores() for k, v in _CPU_RATES.items()}
    free = (_free_GiB(on_gpu) if free_GiB is None else free_GiB) / n_local
    budget = (budget_GiB or free / 4) * 2**30
    sparse_is_faster = lit_share / rates["sparse"] < 1 / rates["dense"]
    layout: Layout = "sparse" if is_counts and sparse_is_faster else "dense"
    tile_rows = 8192 if on_gpu else 128 if layout == "sparse" else 512
    most_rows = int(_SHARE_OF_TILES * budget // max(4 * _BY_PIXEL * n_pixels, 1))
    most_rows = max(1, min(n_rows, most_rows))
    tile_rows, fine_rows = min(tile_rows, most_rows), min(_LARGER_TILES[device] * tile_rows, most_rows)
    # Bytes per frame: its scores; maxima and sums of tiles, twice while they are joined; sums of 256 rows;
    # and its part of a tile.
    score = n_rows * ((2 if on_gpu else 4) + 56 / tile_rows + 8 / 256)
    in_tile, tile = 4.0 * _BY_FRAME * tile_rows, 4.0 * _BY_PIXEL * tile_rows * n_pixels
    batch = int(max(1, min(n_frames, (budget - tile) // (score + in_tile))))
    frame = max(1.0, n_pixels * _bytes_per_pixel(on_gpu, layout, lit_share, largest_count, is_counts))
    share = _SHARE_OF_DEVICE * free * 2**30
    on_device = frames_in_memory and not (on_gpu and n_frames * frame > share)
    if not on_device:  # the next batch is copied while one is worked on
        batch = max(1, min(batch, int(share / (3 * frame))))
    at_once = min(batch, -(-n_frames // n_halves))
    work = float(n_frames) * n_rows * n_pixels
    products = 2 * work * (lit_share / rates["sparse"] if layout == "sparse" else 1 / rates["dense"])
    passes = n_halves * -(-(n_frames // n_halves) // batch)
    moves = passes * float(n_rows) * n_pixels * (2 / rates["slice"] + 1 / rates["insert"])
    # Each half has a model, and the model of the step before.
    voxel = n_models * (_MODEL * (2 * n_halves + 1) + _SUMS[device] * n_halves) + _TABLES[device]
    solving = n_models * _SOLVING + (_FILTERING[device] if n_halves > 1 else 0)
    memory = Memory(
        frames=int(frame * (n_frames if on_device else 3 * batch)) + stored_bytes,
        poses=_ROW * n_rows,
        volumes=voxel * edge_voxels**3,
        scores=int(at_once * score),
        tiles=int(max(at_once * in_tile + tile, 4.0 * _BY_PIXEL * fine_rows * n_pixels)),
        compression=solving * edge_voxels**3,
        judging=_JUDGED * min(at_once * n_pixels, _JUDGED_AT_ONCE),
    )
    precision = "split" if largest_square > LARGEST_HALF_SQUARE else "half"
    precision = "two-term" if is_deterministic else precision
    precision = precision if on_gpu else "single"
    seconds = (products + moves) / n_ranks
    return Plan(
        device, layout, precision, n_frames, n_pixels, n_rows, edge_voxels, tile_rows, fine_rows, batch,
        memory.scores, memory.total / 2**30, seconds, frames_in_memory, on_device, memory,
    )  # fmt: skip


def count_poses(level: int, group_order: int = 1) -> int:
    """Number of poses of the 600-cell with this many divisions, reduced by a point group; none is made.

    Exact for I, T, D2 and C2, which are symmetries of the 600-cell itself; within a few per cent for others.

    >>> count_poses(10), count_poses(10, 60)
    (50100, 835)
    """
    if level > MOST_DIVISIONS:
        raise OrienteerError(
            f"the finest grid would divide the 600-cell {level} times; {MOST_DIVISIONS} is the limit.",
            "Ask for a lower resolution, or set a level.",
        )
    return -(-n_rotations(level) // group_order)


def _bytes_per_pixel(
    on_gpu: bool, layout: Layout, lit_share: float, largest_count: float, is_counts: bool
) -> float:
    """Bytes per pixel of a frame, including the operands that its products keep ready."""
    if layout == "sparse":
        return lit_share * _LISTED
    small_enough = is_counts and largest_count <= LARGEST_HALF_COUNT
    if on_gpu:  # one float16 term; or the counts and two such terms
        return 2 if small_enough else 8
    # Counts are kept with a copy in float32; signal is float32 already.
    return 4 + (1 if largest_count < 256 else 2) if is_counts else 4


def _free_GiB(on_gpu: bool) -> float:
    if not on_gpu:
        return memory_GiB()[1]
    cupy: Any = import_cupy()
    return float(cupy.cuda.runtime.memGetInfo()[0] / 2**30)
