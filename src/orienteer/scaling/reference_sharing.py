"""The cheapest way for a cluster to provide the slices of M-TIP's model: make anew, keep, share or fetch."""

from orienteer.mtip.references.planning import Choice, Demand, Rates, choose_references
from orienteer.scaling.prediction import Prediction

# Bytes of a pixel in a kept slice.
_PIXEL_BYTES = 4
# Share of a rank's memory that kept slices may take.
_ROOM = 0.25
# The disk of a node: bytes per second, which its ranks share, and free bytes; both are assumed.
_DISK_BANDWIDTH, _DISK_BYTES = 1e9, 1e12


def choose_slices(found: Prediction) -> Choice:
    """The choice that costs a rank least time per model, by the rates of the machine.

    As in a run, all ranks may keep slices together; the ranks of a group divide the slices among themselves.
    """
    problem, machine, size = found.problem, found.machine, found.group_size
    n_tiles = -(-problem.n_rows // found.tile_rows)
    points = problem.n_rows / n_tiles * problem.n_pixels
    tile_bytes = _PIXEL_BYTES * points
    frames = problem.n_frames / found.n_groups / problem.n_halves
    batches = max(1.0, frames / found.batch_frames)
    pairs = problem.n_rows / n_tiles * min(frames, found.batch_frames)
    costs = machine.rates.costs
    rates = Rates(
        make=costs["expand"]["points"] * points,
        score=costs["score"]["pairs"] * pairs + costs["score"]["products"] * pairs * problem.n_pixels,
        memory=tile_bytes / machine.memory_bandwidth,
        near=tile_bytes / (machine.copy_bandwidth or machine.memory_bandwidth),
        network=tile_bytes / machine.network.bandwidth + machine.network.latency_s,
        disk=tile_bytes / _DISK_BANDWIDTH,
    )
    room = _ROOM * machine.memory_GiB * 2**30
    demand = Demand(
        n_tiles, int(tile_bytes), batches / size, room, _DISK_BYTES, in_order=size == 1
    )  # fmt: skip
    ranks, near = list(range(found.n_ranks)), machine.ranks_per_node
    return choose_references(demand, rates, [ranks[first : first + near] for first in ranks[::near]])
