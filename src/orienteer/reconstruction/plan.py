"""What a run will need before it starts: device, layout, tile, batch, memory, time."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from orienteer.compute.arrays import DeviceName, import_cupy
from orienteer.compute.machine import memory_GiB, usable_cores
from orienteer.likelihood.frames import Layout

# Multiply-adds per second and core or card, dense and sparse; points sliced and inserted per second.
_CPU_RATES = {"dense": 2.5e10, "sparse": 5e9, "slice": 1.2e8, "insert": 5e7}
_GPU_RATES = {"dense": 2e14, "sparse": 1e12, "slice": 5e10, "insert": 2e10}
# Share of a card's free memory that frames may fill; larger sets stay in host memory and are copied in turn.
_SHARE_OF_DEVICE = 0.5
# An operand of one float16 term is wrong by 1.4e-4 (rms) where it deviates from the mean by half, and a score
# by that times the root of the frame's squared counts: 0.05 nat at five standard deviations.
_LARGEST_HALF_SQUARE = 5000.0


@dataclass(frozen=True)
class Plan:
    """Sizes of everything that a run holds at once.

    layout : frames as arrays ("dense") or as lists of photons ("sparse").
    precision : of the products.
    tile_rows : poses that are sliced and scored together.
    batch_frames : frames that are scored against all poses at once, at the finest grid.
    score_bytes : memory of the scores of a batch.
    memory_GiB : of everything together, at most.
    seconds_per_iteration : expected at the finest grid.
    frames_in_memory : whether the machine's memory holds all frames; else they are read in every iteration.
    frames_on_device : whether the device holds all frames; else batches come to it one after the other.
    """

    device: str
    layout: Layout
    precision: str
    n_frames: int
    n_pixels: int
    n_rotations: int
    edge_voxels: int
    tile_rows: int
    batch_frames: int
    score_bytes: int
    memory_GiB: float
    seconds_per_iteration: float
    frames_in_memory: bool = True
    frames_on_device: bool = True

    def describe(self) -> list[tuple[str, str]]:
        """Names and values in words, for people."""
        return [
            ("device", self.device),
            ("frames", f"{self.n_frames:,} of {self.n_pixels:,} pixels, {self.layout}"),
            ("frames are kept", self._where_frames_are),
            ("precision", self.precision),
            ("orientations", f"{self.n_rotations:,} at the finest grid, {self.tile_rows:,} at a time"),
            ("batch", f"{self.batch_frames:,} frames at a time"),
            ("volume", f"{self.edge_voxels}^3 voxels"),
            ("memory", f"{self.memory_GiB:.2f} GiB"),
            ("an iteration", f"about {self.seconds_per_iteration:.2g} s at the finest grid"),
        ]

    @property
    def _where_frames_are(self) -> str:
        if not self.frames_in_memory:
            return "on disk, read in every iteration"
        return "in memory" if self.frames_on_device else "in host memory, copied in every iteration"

    def to_json(self) -> dict[str, Any]:
        """All numbers by name."""
        return asdict(self)


def make_plan(
    device: DeviceName, n_frames: int, n_pixels: int, n_rows: int, edge_voxels: int, lit_share: float,
    largest_count: float, is_counts: bool, budget_GiB: float = 0.0, frames_in_memory: bool = True,
    largest_square: float = np.inf,
) -> Plan:  # fmt: skip
    """Choose layout, tile and batch such that everything fits in the budget.

    budget_GiB : for scores and slices; 0: a quarter of the free memory.
    largest_square : largest sum of squared counts of a frame, where one float16 term may do for the operand.
    """
    on_gpu = device == "cuda"
    rates = _GPU_RATES if on_gpu else {k: v * usable_cores() for k, v in _CPU_RATES.items()}
    free = _free_GiB(on_gpu)
    budget = (budget_GiB or free / 4) * 2**30
    sparse_is_faster = lit_share / rates["sparse"] < 1 / rates["dense"]
    layout: Layout = "sparse" if is_counts and sparse_is_faster else "dense"
    tile_rows = 4096 if on_gpu else 128 if layout == "sparse" else 512
    tile_rows = max(1, min(tile_rows, n_rows, int(budget / 4 // max(8 * n_pixels, 1)) or 1))
    entry = 2 if on_gpu else 4
    room = budget - 8.0 * tile_rows * n_pixels
    batch = int(max(1, min(n_frames, room // (n_rows * entry + tile_rows * 8))))
    # Lists are kept by frame and by pixel.
    frame = max(1, n_pixels * (lit_share * 16 if layout == "sparse" else 2))
    share = _SHARE_OF_DEVICE * free * 2**30
    on_device = frames_in_memory and not (on_gpu and n_frames * frame > share)
    if not on_device:  # one batch arrives while another is worked on
        batch = max(1, min(batch, int(share / (3 * frame))))
    work = float(n_frames) * n_rows * n_pixels
    products = 2 * work * (lit_share / rates["sparse"] if layout == "sparse" else 1 / rates["dense"])
    passes = -(-n_frames // batch)
    moves = passes * float(n_rows) * n_pixels * (2 / rates["slice"] + 1 / rates["insert"])
    held = frame * (n_frames if on_device else 3 * batch)
    total = batch * (n_rows * entry + tile_rows * 8) + 8 * tile_rows * n_pixels + held + 60 * edge_voxels**3
    precision = "split" if largest_square > _LARGEST_HALF_SQUARE else "half"
    precision = precision if on_gpu else "single"
    return Plan(
        device, layout, precision, n_frames, n_pixels, n_rows, edge_voxels, tile_rows, batch,
        batch * n_rows * entry, total / 2**30, products + moves, frames_in_memory, on_device,
    )  # fmt: skip


def _free_GiB(on_gpu: bool) -> float:
    if not on_gpu:
        return memory_GiB()[1]
    cupy: Any = import_cupy()
    return float(cupy.cuda.runtime.memGetInfo()[0] / 2**30)
