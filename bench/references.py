"""References shared by ranks: memory of each, who reads from whom, and what fetching ahead is worth.

    python bench/references.py [shared] [--ranks 4] [--ranks-per-node 2] [--orientations 262144]
                               [--pixels 4096] [--frames 16] [--keep]
    python bench/references.py ahead  [--ranks 2] [--ranks-per-node 1] [--orientations 16384]
                               [--pixels 4096] [--frames 512] [--links 0.4 0.2 0.1] [--keep]
    python bench/references.py alone  [--orientations 8192] [--pixels 1024] [--keep]

shared: starts itself on so many ranks, which stand for nodes of ``--ranks-per-node``.  Each makes its share
of the slices of all orientations, and then matches frames of its own with all of them.  Asked: memory of
every rank within 5 % of its share and the buffers; never two readers of one window in a step.

ahead: the same on few ranks, each with a core to itself, reading when tiles are needed and one tile ahead.
The "network" of ranks on one machine is its memory, which takes the time of the processors that score.  So
tiles come through links that deliver so many GB/s to each rank while its processor is free, as a network
does; the delay of these is made up.  ``waited`` are the seconds in which a rank had nothing to score.

alone: one process, in which slices are made anew, kept in memory or on disk, for batches of few and of many
frames: what the planner has to choose between, and what it foretells.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from machine import describe_machine, report
from orienteer.compute.arrays import Array
from orienteer.compute.ranks.launchers import is_launched
from orienteer.compute.ranks.sharing import use_threads
from orienteer.mtip.matching import match
from orienteer.mtip.references.expander import ReferenceExpander, tiling_of
from orienteer.mtip.references.measuring import measure_rates
from orienteer.mtip.references.opening import open_references
from orienteer.mtip.references.planning import Demand, choose_references, options
from orienteer.mtip.references.references import Kept
from orienteer.mtip.references.tiling import Tiling
from orienteer.mtip.references.topology import Ranks
from orienteer.mtip.references.trace import Trace, share_of_waiting_in_common, shared_windows
from orienteer.mtip.references.window_store import WindowStore
from orienteer.orientation.quaternion import to_matrix
from orienteer.orientation.super_fibonacci import super_fibonacci
from orienteer.reconstruction.benchmark import made_up
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.rows import Poses, RowSpace

GOAL_MEMORY = 0.05
DEFAULTS: dict[str, dict[str, Any]] = {
    "shared": {"ranks": 4, "ranks_per_node": 2, "orientations": 262_144, "pixels": 4_096, "frames": 16}
    | {"repeats": 1, "links": [0.0]},
    "ahead": {"ranks": 2, "ranks_per_node": 1, "orientations": 16_384, "pixels": 4_096, "frames": 512}
    | {"repeats": 3, "links": [0.0, 0.4, 0.2, 0.1]},
    "alone": {"orientations": 8_192, "pixels": 1_024},
}
_TILE_ROWS = 512


class Links(WindowStore):
    """Windows behind links of so many bytes per second to each rank; nothing waits where that is 0.

    in_turn : in the order that keeps readers apart; or all from the first rank on.
    """

    def __init__(self, tiling: Tiling, ranks: Ranks, bytes_per_second: float, in_turn: bool) -> None:
        super().__init__(tiling, ranks)
        self.bytes_per_second = bytes_per_second
        self._turns, self._rows = self.order, sorted(self.order, key=lambda share: share.start)
        self.take_order(in_turn)

    def take_order(self, in_turn: bool) -> None:
        """Read in turns from now on, or from the first rank on."""
        self.order = self._turns if in_turn else self._rows

    def fetch(self, tile: int, into: Array) -> None:
        """Fetch a tile, and wait as long as the link would have taken."""
        began = time.monotonic()
        super().fetch(tile, into)
        if self.bytes_per_second:
            time.sleep(max(0.0, began + self.tiling.slot_bytes / self.bytes_per_second - time.monotonic()))


class Waited(Kept):
    """References that add up how long whoever scores has waited for slices."""

    seconds = 0.0

    def visit(self) -> Iterator[tuple[int, Array]]:
        """The same tiles, with a look at the clock before and after each."""
        tiles = super().visit()
        while True:
            began = time.perf_counter()
            found = next(tiles, None)
            self.seconds += time.perf_counter() - began
            if found is None:
                return
            yield found


def row_space(n_poses: int, tile_rows: int) -> RowSpace:
    """Poses that cover all rotations evenly."""
    matrices = np.swapaxes(to_matrix(super_fibonacci(n_poses).quaternions), 1, 2).astype(np.float32)
    poses = Poses(np.ascontiguousarray(matrices), np.zeros(n_poses, dtype=np.float32))
    return RowSpace(poses, 1, poses.log_weights, tile_rows=tile_rows)


def own_bytes() -> int:
    """Memory of this process, in which a page that n processes share counts 1 / n."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def measure_shared(options_: argparse.Namespace) -> dict[str, Any] | None:
    """What every rank does; the first one has the result."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    use_threads(1)
    ranks = Ranks.of(comm, options_.ranks_per_node)
    problem, truth, _ = made_up(options_.frames, options_.pixels, 1, "gaussian", "cpu", comm.rank, 1000.0)
    truth = comm.bcast(truth)
    batch, rows = problem._batch(problem._prepared[0]), row_space(options_.orientations, _TILE_ROWS)
    plain = Expander(truth[None], problem._points)
    few = RowSpace(Poses(rows.poses.matrices[:600], rows.log_prior[:600]), 1, rows.log_prior[:600], 0, 300)
    match(problem.likelihood, plain, few, batch)  # compiles
    tiling = tiling_of(rows, options_.pixels, batch.by_pixel)
    comm.Barrier()
    before = own_bytes()
    store = Links(tiling, ranks.group(len(ranks.nodes)), 0.0, True)
    trace = Trace()
    references = {ahead: Waited(store, ahead=ahead, trace=trace) for ahead in (1, 0)}
    seconds: dict[str, float] = {}
    waited: dict[str, float] = {}

    def timed(name: str, work: Any) -> Any:
        comm.Barrier()
        began = time.perf_counter()
        done = work()
        comm.Barrier()
        seconds[name] = min(time.perf_counter() - began, seconds.get(name, np.inf))
        return done

    expander = timed(
        "make own share",
        lambda: ReferenceExpander(truth[None], problem._points, None, references=references[1], space=rows),
    )
    kept_bytes = own_bytes() - before
    found, contention = {}, {}
    ways = [(True, 1), (False, 1)] if options_.what == "shared" else [(True, 1), (True, 0)]
    for link in options_.links:
        store.bytes_per_second = link * 1e9
        for in_turn, ahead in ways * options_.repeats:
            store.take_order(in_turn)
            expander.references = references[ahead]
            trace.visits.clear()
            references[ahead].seconds = 0.0
            words = [f"links of {link:g} GB/s"] if link else []
            words += ["in low-contention order" if in_turn else "in the order of rows"]
            words += ["one tile ahead" if ahead else "when needed"]
            name = ", ".join(words)
            found[name] = timed(name, lambda: match(problem.likelihood, expander, rows, batch))
            mean = float(np.mean(comm.allgather(references[ahead].seconds)))
            waited[name] = min(mean, waited.get(name, np.inf))
            visits = [visit for own in comm.allgather(trace.visits) for visit in own]
            several = shared_windows(visits)
            assert not (in_turn and several), "a window had two readers in one step"
            contention[name] = {
                "tiles_read": len(visits),
                "windows_with_several_readers_in_a_step": len(several),
                "share_of_copying_time_in_common": round(share_of_waiting_in_common(visits), 4),
            }
    read_bytes = own_bytes() - before
    share, buffers = store.bytes_kept, max(each.buffer_bytes for each in references.values())
    both = sum(each.buffer_bytes for each in references.values())
    anew = timed("made anew by every rank", lambda: match(problem.likelihood, plain, rows, batch))
    same = [bool(np.array_equal(each.row, anew.row)) for each in found.values()]
    told = comm.gather(
        {
            "share_bytes": share,
            "buffer_bytes": buffers,
            "memory_after_filling_over_share_and_buffers": kept_bytes / (share + both),
            "memory_after_reading_over_share_and_buffers": read_bytes / (share + both),
            "same_matches": all(same),
        }
    )
    references[1].close()
    if told is None:
        return None
    nodes = [len(node) for node in ranks.nodes]
    return {"nodes": nodes, "ranks": told, "seconds": seconds, "waited": waited, "trace": contention}


def measure_alone(options_: argparse.Namespace) -> dict[str, Any]:
    """One process: seconds of matching, by kind and by frames in a batch, measured and foretold.

    Of the processor, in one thread: what others do on the machine is left out, and so is waiting for a disk.
    """
    use_threads(1)
    rows = row_space(options_.orientations, 128)
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for frames in (4, 32, 256, 2048):
            problem, truth, _ = made_up(frames, options_.pixels, 1, "gaussian", "cpu", 0, 1000.0)
            batch = problem._batch(problem._prepared[0])
            tiling = tiling_of(rows, options_.pixels, batch.by_pixel)
            plain = Expander(truth[None], problem._points)
            tiles = list(rows.tiles())
            match(problem.likelihood, plain, rows, batch)
            measured = {}
            for kind in ("recompute", "replicate", "disk"):
                references = open_references(kind, tiling, folder=folder)  # type: ignore[arg-type]
                began = time.process_time()
                expander = ReferenceExpander(
                    truth[None], problem._points, references=references, space=rows
                )  # fmt: skip
                filled = time.process_time() - began
                passes = []
                for _ in range(3):
                    began = time.process_time()
                    match(problem.likelihood, expander, rows, batch)
                    passes.append(time.process_time() - began)
                references.close()
                measured[kind] = {"make": filled, "a pass": min(passes)}

            def make(tile: int, own: Any = (plain, rows, tiles, batch.by_pixel)) -> Array:
                return own[0].slices(own[1], own[2][tile], own[3])

            rates = measure_rates(make, tiling, 0.0, folder=folder)
            made = rates.make * len(tiling)
            score = max(0.0, measured["recompute"]["a pass"] - made) / len(tiling)
            rates = type(rates)(**{**asdict(rates), "score": score})
            foretold = {}
            for passes_ in (1, 2, 10):
                demand = Demand(len(tiling), tiling.slot_bytes, passes_, 64 * 2**30, 2**40)
                foretold[f"{passes_} passes"] = {
                    "seconds": {o.kind: round(o.seconds, 3) for o in options(demand, rates, ((0,),))},
                    "measured": {
                        kind: round((kind != "recompute") * each["make"] + passes_ * each["a pass"], 3)
                        for kind, each in measured.items()
                    },
                    "chosen": choose_references(demand, rates).why,
                }
            result[f"{frames} frames in a batch"] = {"measured": measured, "foretold": foretold}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=sorted(DEFAULTS), nargs="?", default="shared")
    for name in ("ranks", "ranks-per-node", "orientations", "pixels", "frames", "repeats"):
        parser.add_argument(f"--{name}", type=int, help="frames are those of each rank")
    parser.add_argument("--links", type=float, nargs="+", help="GB/s to each rank; 0: as it is")
    parser.add_argument("--keep", action="store_true", help="keep the result in bench/results")
    options_ = parser.parse_args()
    for name, value in DEFAULTS[options_.what].items():
        if getattr(options_, name) is None:
            setattr(options_, name, value)
    if options_.what == "alone":
        problem = f"{options_.orientations} orientations of {options_.pixels} pixels"
        found = {"problem": problem, "machine": describe_machine(), **measure_alone(options_)}
        report("references_alone", found, options_.keep)
    elif is_launched():
        told = measure_shared(options_)
        if told is not None:
            print(json.dumps(told))
    else:
        mpiexec = str(Path(sys.executable).with_name("mpiexec"))
        words = [mpiexec, "-n", str(options_.ranks), sys.executable, *sys.argv]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
        told = json.loads(done.stdout)
        ratios = [
            abs(rank[f"memory_after_{when}_over_share_and_buffers"] - 1)
            for rank in told["ranks"]
            for when in ("filling", "reading")
        ]
        head = {
            "problem": f"{options_.orientations} orientations of {options_.pixels} pixels, "
            f"{options_.ranks} ranks of one thread, {options_.frames} frames each",
            "machine": describe_machine(),
            "asked": "memory within 5 % of share and buffers; one reader of a window in each step",
            "largest_deviation_of_memory": max(ratios),
            "memory_as_asked": max(ratios) <= GOAL_MEMORY,
            "same_matches_as_made_anew": all(rank["same_matches"] for rank in told["ranks"]),
        }
        report(f"references_{options_.what}", head | told, options_.keep)


if __name__ == "__main__":
    main()
