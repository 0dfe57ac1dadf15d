"""Open references of a given kind for a group of ranks."""

import os
import tempfile

from orienteer.errors import OrienteerError
from orienteer.mtip.references.file_store import FileStore
from orienteer.mtip.references.kinds import Kind
from orienteer.mtip.references.references import Kept, Recomputed, References
from orienteer.mtip.references.stores import MemoryStore, Store
from orienteer.mtip.references.tiling import Tiling
from orienteer.mtip.references.topology import Ranks
from orienteer.mtip.references.trace import Trace
from orienteer.mtip.references.window_store import WindowStore


def open_references(
    kind: Kind, tiling: Tiling, ranks: Ranks | None = None, *, nodes_per_copy: int = 0, ahead: int = 1,
    on_gpu: bool = False, folder: str | os.PathLike[str] | None = None, trace: Trace | None = None,
) -> References:  # fmt: skip
    """References for the ranks that read the same slices; all of them open and close these together.

    kind : "recompute": nothing is kept.  "replicate": every rank keeps all slices.  "share": the ranks of a
        node keep one copy.  "distribute": all ranks, or every group of ``nodes_per_copy`` nodes, keep one
        copy.  "disk": every node keeps one copy in a file.
    ranks : the ranks; None: this process alone, for which "share" and "distribute" mean "replicate".
    nodes_per_copy : the fewest nodes that keep a copy together; 0: all.
    ahead : tiles that are fetched while one is worked on.
    on_gpu : whether slices are needed in the memory of the GPU.
    folder : for "disk"; by default that for temporary files.
    trace : records visits.
    """
    if kind == "recompute":
        return Recomputed(tiling)
    if kind not in ("replicate", "share", "distribute", "disk"):
        raise OrienteerError(
            f"there are no references of the kind {kind!r}.",
            "Choose recompute, replicate, share, distribute or disk.",
        )
    store: Store
    if kind == "disk":
        node = None if ranks is None else ranks.group(1).comm
        store = FileStore(tiling, folder or tempfile.gettempdir(), node)
    elif kind == "replicate" or ranks is None:
        store = MemoryStore(tiling, "cuda" if on_gpu else "cpu")
    else:
        n_nodes = 1 if kind == "share" else nodes_per_copy or len(ranks.nodes)
        windows = WindowStore(tiling, ranks.group(n_nodes))
        store, ahead = windows, ahead if windows.serves_threads else 0
    return Kept(store, ahead=ahead, on_gpu=on_gpu, trace=trace)
