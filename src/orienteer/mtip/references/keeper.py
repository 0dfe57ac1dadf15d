"""References of a reconstruction: chosen when a stage begins or models are added, refilled for new models."""

import os
import shutil
import tempfile
from dataclasses import dataclass
from typing import Any

from orienteer.compute.arrays import Array, import_cupy, is_on_gpu
from orienteer.compute.machine import memory_GiB
from orienteer.mtip.references.expander import ReferenceExpander, tiling_of
from orienteer.mtip.references.kinds import Kind, Wish
from orienteer.mtip.references.measuring import measure_rates
from orienteer.mtip.references.opening import open_references
from orienteer.mtip.references.planning import Choice, Demand, Option, best_of_kind, choose_references
from orienteer.mtip.references.references import References
from orienteer.mtip.references.tiling import Tiling
from orienteer.mtip.references.topology import Ranks
from orienteer.reconstruction.orienting.expander import Expander
from orienteer.reconstruction.orienting.rows import RowSpace
from orienteer.slicing.patches import PointPatches

# Shares of the memory and disk that are free when a stage begins; the rest is for everything else.
_SHARE_OF_MEMORY, _SHARE_OF_DISK = 0.5, 0.8


@dataclass(frozen=True)
class Reading:
    """How references will be read until the models change.

    passes : batches of frames for which a rank reads all tiles.
    score_seconds : seconds that scoring takes in one pass.
    by_pixel : the layout that the products need.
    in_order : whether every rank reads all tiles in order; else ranks claim tiles, in no known order.
    """

    passes: float
    score_seconds: float
    by_pixel: bool
    in_order: bool = True


class ReferenceKeeper:
    """Makes the expanders of a reconstruction; all ranks that read the same slices call it together.

    wish : the kind; "auto": whichever costs least.
    ranks : the ranks that read the same slices; None: this process alone.
    folder : on the disk to use; by default that for temporary files.
    choice : the last choice of "auto", and why; None: there was none.
    """

    def __init__(
        self, wish: Wish, ranks: Ranks | None = None, folder: str | os.PathLike[str] | None = None
    ) -> None:
        self._wish, self._ranks, self._folder = wish, ranks, folder or tempfile.gettempdir()
        self.choice: Choice | None = None
        self._news = ""
        self._references: References | None = None
        self._tiling: Tiling | None = None

    def expander(
        self, models: Array, points: PointPatches, junk: Array | None, rows: RowSpace, reading: Reading
    ) -> Expander:
        """The expander of models (M, n, n, n); its references are valid until the next expander is made.

        rows : the rows whose slices are kept; those of other rows are made on demand.
        """
        if self._wish == "recompute":
            return Expander(models, points, junk)
        tiling = tiling_of(rows, len(points), reading.by_pixel)
        if tiling != self._tiling:
            self.close()
            plain = Expander(models, points, junk)
            option = self._chosen(plain, rows, tiling, reading)
            self._tiling = tiling
            if option.kind != "recompute":
                self._references = open_references(
                    option.kind, tiling, self._ranks, nodes_per_copy=option.nodes_per_copy,
                    on_gpu=is_on_gpu(models), folder=self._folder,
                )  # fmt: skip
        if self._references is None:
            return Expander(models, points, junk)
        return ReferenceExpander(models, points, junk, references=self._references, space=rows)

    def news(self) -> str:
        """The reason for the last choice, reported once; empty if there is nothing new to report."""
        news, self._news = self._news, ""
        return news

    def close(self) -> None:
        """Release what is kept; all ranks call this together."""
        if self._references is not None:
            self._references.close()
        self._references = self._tiling = None

    def _chosen(self, expander: Expander, rows: RowSpace, tiling: Tiling, reading: Reading) -> Option:
        nodes = ((0,),) if self._ranks is None else self._ranks.nodes
        kind: Kind
        if self._wish != "auto" and (self._wish != "distribute" or len(nodes) < 3):
            kind = self._wish
            return Option(kind, 0.0, 0.0)
        tiles = list(rows.tiles())
        score = reading.score_seconds / len(tiling)
        demand = self._demand(tiling, reading, is_on_gpu(expander.models))
        rates = measure_rates(
            lambda tile: expander.slices(rows, tiles[tile], tiling.by_pixel), tiling, score, self._ranks,
            self._folder, with_disk=len(tiling) * tiling.slot_bytes > demand.memory_bytes,
        )  # fmt: skip
        if self._wish == "distribute":  # only the number of nodes remains to be chosen
            return best_of_kind("distribute", demand, rates, nodes)
        before = None if self.choice is None else self.choice.option.kind
        self.choice = choose_references(demand, rates, nodes)
        kind = self.choice.option.kind
        if kind != before and (kind != "recompute" or before or self._ranks is not None):
            self._news = self.choice.why
        return self.choice.option

    def _demand(self, tiling: Tiling, reading: Reading, on_gpu: bool) -> Demand:
        """The same demand on all ranks: the most passes of any rank, and the least memory and disk."""
        ranks, passes, in_order = self._ranks, reading.passes, reading.in_order
        n_local = 1 if ranks is None else len(ranks.nodes[ranks.own_node])
        memory = _SHARE_OF_MEMORY * memory_GiB()[1] * 2**30 / n_local
        if on_gpu:
            cupy: Any = import_cupy()
            memory = min(memory, _SHARE_OF_MEMORY * cupy.cuda.runtime.memGetInfo()[0])
        disk = _SHARE_OF_DISK * shutil.disk_usage(self._folder).free
        if ranks is not None:
            # Groups may be uneven: a rank that is alone in its group reads in order, others claim tiles.
            told = ranks.comm.allgather((passes, -memory, -disk, not in_order))
            passes, memory, disk, claims = (max(each) for each in zip(*told, strict=True))
            memory, disk, in_order = -memory, -disk, not claims
        return Demand(len(tiling), tiling.slot_bytes, passes, memory, disk, in_order)
