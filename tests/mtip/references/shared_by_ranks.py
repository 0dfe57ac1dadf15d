"""Run by mpiexec: ranks share references, check every slice, and tell what each kept and who read from whom.

python shared_by_ranks.py KIND RANKS_PER_NODE NODES_PER_COPY N_ROWS
"""

import json
import sys
from dataclasses import asdict

import numpy as np

from orienteer.mtip.references.opening import open_references
from orienteer.mtip.references.references import Kept
from orienteer.mtip.references.tiling import Tiling
from orienteer.mtip.references.topology import Ranks
from orienteer.mtip.references.trace import Trace


def slices_of(tiling: Tiling, tile: int, model: int) -> np.ndarray:
    rows = np.arange(tiling.rows(tile).start, tiling.rows(tile).stop, dtype=np.float32)
    return np.asarray((1000 * model + rows)[:, None] + np.arange(16, dtype=np.float32) / 64)


def main() -> None:
    from mpi4py import MPI

    kind = sys.argv[1]
    per_node, nodes_per_copy, n_rows = map(int, sys.argv[2:5])
    comm = MPI.COMM_WORLD
    ranks = Ranks.of(comm, per_node)
    tiling = Tiling.even(n_rows, 4, 16)
    trace = Trace()
    references = open_references(kind, tiling, ranks, nodes_per_copy=nodes_per_copy, trace=trace)  # type: ignore[arg-type]
    is_right, n_made = True, 0
    for model in range(3):
        trace.visits.clear()
        made = []

        def make(tile: int, model: int = model, made: list[int] = made) -> np.ndarray:
            made.append(tile)
            return slices_of(tiling, tile, model)

        references.fill(make)
        n_made, seen = len(made), []
        for tile, found in references.visit():
            is_right &= np.array_equal(found, slices_of(tiling, tile, model))
            seen.append(tile)
        is_right &= sorted(seen) == list(range(len(tiling)))
    told = comm.gather(
        {
            "right": is_right,
            "made": n_made,
            "bytes": references.store.bytes_kept if isinstance(references, Kept) else 0,
            "visits": [asdict(visit) for visit in trace.visits],
        }
    )
    references.close()
    if comm.rank == 0:
        slots = {"tiles": len(tiling), "slot_bytes": tiling.slot_bytes}
        print(json.dumps({"nodes": [list(node) for node in ranks.nodes], "ranks": told, **slots}))


if __name__ == "__main__":
    main()
