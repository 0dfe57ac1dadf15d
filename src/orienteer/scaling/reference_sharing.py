"""How slices of M-TIP's model would be had on a cluster: made anew, kept, shared or fetched, by cost."""

from orienteer.mtip.references.planning import Choice, Demand, Rates, choose_references
from orienteer.scaling.prediction import Prediction

# Slices of a tile, and bytes of a pixel as it is kept.
_TILE_ROWS, _PIXEL_BYTES = 4096, 4
# Of a rank's memory, the share that kept slices may take.
_ROOM = 0.25
# Bytes per second of a node's own disk, which its ranks share; assumed.
_DISK_BANDWIDTH = 1e9


def choose_slices(found: Prediction) -> Choice:
    """What costs a rank least between two models, by the rates of the machine.

    Ranks that stand at the same place of their groups read the same slices; those of one group divide them.
    """
    problem, machine = found.problem, found.machine
    rows = -(-problem.n_rows // found.group_size)
    n_tiles = -(-rows // _TILE_ROWS)
    points = rows / n_tiles * problem.n_pixels
    tile_bytes = _PIXEL_BYTES * points
    frames = problem.n_frames / found.n_groups / problem.n_halves
    batches = max(1.0, frames / found.batch_frames)
    pairs = rows / n_tiles * min(frames, found.batch_frames)
    costs = machine.rates.costs
    rates = Rates(
        make=costs["expand"]["points"] * points,
        score=costs["score"]["pairs"] * pairs + costs["score"]["products"] * pairs * problem.n_pixels,
        memory=tile_bytes / machine.memory_bandwidth,
        near=tile_bytes / (machine.copy_bandwidth or machine.memory_bandwidth),
        network=tile_bytes / machine.network.bandwidth + machine.network.latency_s,
        disk=tile_bytes / _DISK_BANDWIDTH,
    )
    demand = Demand(n_tiles, int(tile_bytes), batches, _ROOM * machine.memory_GiB * 2**30)
    near = max(1, machine.ranks_per_node // found.group_size)
    readers = list(range(found.n_groups))
    nodes = [readers[first : first + near] for first in range(0, found.n_groups, near)]
    return choose_references(demand, rates, nodes)
