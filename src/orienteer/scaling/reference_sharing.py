"""How slices of M-TIP's model would be had on a cluster: made anew, kept, shared or fetched, by cost."""

from orienteer.mtip.references.planning import Choice, Demand, Rates, choose_references
from orienteer.scaling.prediction import Prediction

# Of a pixel as it is kept.
_PIXEL_BYTES = 4
# Of a rank's memory, the share that kept slices may take.
_ROOM = 0.25
# Of a node's own disk: bytes per second, which its ranks share, and bytes that are free; assumed.
_DISK_BANDWIDTH, _DISK_BYTES = 1e9, 1e12


def choose_slices(found: Prediction) -> Choice:
    """What costs a rank least between two models, by the rates of the machine.

    As in a run, all ranks may keep slices together; those of one group claim them, each a part.
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
