"""Which references cost least: time of each kind from measured rates, and memory of each rank.

All tiles are read once for every batch of frames.  If they are made anew, n tiles and b batches take

    b n (make + score)

on every rank.  If h ranks make them together and keep them, this becomes

    n / h make  +  b (n_near (near + score) + n_far max(score, network))

Near tiles are in the memory of the node; far ones are on other nodes, and are fetched while others are
scored.  In larger groups of nodes each rank has fewer tiles to make and keep, and more to fetch.
"""

from dataclasses import dataclass
from itertools import pairwise

from orienteer.compute.words import counted
from orienteer.mtip.references.kinds import Kind
from orienteer.mtip.references.order import Nodes, groups_of_nodes, shares

# References are kept only if that saves this share of the time.
_WORTH = 0.1


@dataclass(frozen=True)
class Rates:
    """Seconds for one tile.

    make, score : to make it, and to score it with one batch of frames.
    memory : to read it from the rank's own copy.
    near : to read it from a copy in the memory of the node, and to copy it to the GPU if that scores.
    network, disk : to fetch it from another node, and to write it to disk or read it from there.
    """

    make: float
    score: float
    memory: float
    near: float
    network: float
    disk: float


@dataclass(frozen=True)
class Demand:
    """What references must provide between two models, and the room they have.

    n_tiles, tile_bytes : number of tiles, and bytes of a kept one.
    passes : batches of frames for which a rank reads all tiles; a half if two ranks share the tiles out.
    memory_bytes : memory of each rank that references may take; disk_bytes : disk of each node.
    in_order : whether tiles come in a known order and can be fetched ahead; false if ranks claim them.
    """

    n_tiles: int
    tile_bytes: int
    passes: float
    memory_bytes: float
    disk_bytes: float = 0.0
    in_order: bool = True


@dataclass(frozen=True)
class Option:
    """One kind of references: seconds between two models, bytes of memory per rank and of disk per node.

    nodes_per_copy : for "distribute", the fewest nodes that keep a copy together.
    """

    kind: Kind
    seconds: float
    memory_bytes: float
    disk_bytes: float = 0.0
    nodes_per_copy: int = 0


@dataclass(frozen=True)
class Choice:
    """The chosen option, and the reason in one sentence."""

    option: Option
    why: str


def options(demand: Demand, rates: Rates, nodes: Nodes) -> list[Option]:
    """All kinds that make sense on these nodes, with their cost on the busiest rank."""
    n, b = demand.n_tiles, demand.passes
    kept = n * (rates.make + b * (rates.memory + rates.score))
    found = [
        Option("recompute", n * b * (rates.make + rates.score), 0.0),
        Option("replicate", kept, n * demand.tile_bytes),
    ]
    fewest = min(map(len, nodes))
    share = -(-n // fewest)
    if fewest > 1:
        seconds = share * rates.make + n * b * (rates.near + rates.score)
        found.append(Option("share", seconds, share * demand.tile_bytes))
    # One group of all nodes, two groups and so on; other values of nodes_per_copy give the same groups.
    sizes = sorted({len(nodes) // n_groups for n_groups in range(1, len(nodes) + 1)} - {0, 1})
    found += [_distributed(demand, rates, nodes, size) for size in sizes]
    reading = n * b * _fetched(rates.disk, rates.score, demand.in_order)
    written = share * (rates.make + rates.disk)
    found.append(Option("disk", written + reading, 3 * demand.tile_bytes, n * demand.tile_bytes))
    return found


def _distributed(demand: Demand, rates: Rates, nodes: Nodes, least_nodes: int) -> Option:
    seconds = memory = 0.0
    for group in groups_of_nodes(nodes, least_nodes):
        n_ranks = sum(map(len, group))
        held = [len(share) for share in shares(demand.n_tiles, n_ranks)]
        ends = [0]
        for node in group:
            ends.append(ends[-1] + len(node))
        near = min(sum(held[first:last]) for first, last in pairwise(ends))
        far = demand.n_tiles - near
        reading = near * (rates.near + rates.score) + far * _fetched(
            rates.network, rates.score, demand.in_order
        )
        seconds = max(seconds, max(held) * rates.make + demand.passes * reading)
        # One tile is in use while the next arrives.
        memory = max(memory, float((max(held) + 2) * demand.tile_bytes))
    return Option("distribute", seconds, memory, nodes_per_copy=least_nodes)


def _fetched(fetch: float, score: float, in_order: bool) -> float:
    return max(fetch, score) if in_order else fetch + score


def choose_references(demand: Demand, rates: Rates, nodes: Nodes = ((0,),)) -> Choice:
    """The fastest kind that fits; slices are made anew unless keeping them saves a tenth of the time."""
    all_options = options(demand, rates, nodes)
    anew = all_options[0]
    fitting = [
        option
        for option in all_options
        if option.memory_bytes <= demand.memory_bytes and option.disk_bytes <= demand.disk_bytes
    ]
    best = min(fitting, key=lambda option: option.seconds, default=anew)
    if best.seconds > (1 - _WORTH) * anew.seconds:
        best = anew
    return Choice(best, _why(best, all_options, demand, nodes))


def best_of_kind(kind: Kind, demand: Demand, rates: Rates, nodes: Nodes = ((0,),)) -> Option:
    """The fastest option of a kind that fits; if none fits, the one that takes least memory."""
    own = [option for option in options(demand, rates, nodes) if option.kind == kind]
    fitting = [option for option in own if option.memory_bytes <= demand.memory_bytes]
    if fitting:
        return min(fitting, key=lambda option: option.seconds)
    # On a machine on which the kind makes no difference, there is no option for it.
    return min(own, key=lambda option: option.memory_bytes, default=Option(kind, 0.0, 0.0))


def _why(best: Option, all_options: list[Option], demand: Demand, nodes: Nodes) -> str:
    anew = all_options[0]
    if best.kind == "recompute":
        other = min(all_options[1:], key=lambda option: option.seconds)
        words = f"kept {_words(other, nodes)}, they would take {_seconds(other.seconds)}"
        if other.memory_bytes > demand.memory_bytes:
            words += f" and {_GiB(other.memory_bytes)} a rank; only {_GiB(demand.memory_bytes)} is available"
        return f"Slices are made anew for every batch of frames, in {_seconds(anew.seconds)}: {words}."
    words = f"{_seconds(best.seconds)} instead of {_seconds(anew.seconds)} to make them anew for every batch"
    faster = min(all_options, key=lambda option: option.seconds)
    sentence = f"Slices are kept {_words(best, nodes)}, {_GiB(best.memory_bytes)} a rank: {words}"
    if faster is not best:
        sentence += (
            f"; kept {_words(faster, nodes)}, they would need {_GiB(faster.memory_bytes)} a rank, but only "
            f"{_GiB(demand.memory_bytes)} is available"
        )
    return f"{sentence}."


def _words(option: Option, nodes: Nodes) -> str:
    if option.kind == "replicate":
        return "in the memory of every rank" if sum(map(len, nodes)) > 1 else "in memory"
    if option.kind == "share":
        return "once on every node"
    if option.kind == "disk":
        return "on disk"
    if option.nodes_per_copy >= len(nodes):
        return "once, distributed over all nodes"
    return f"once on every {counted(option.nodes_per_copy, 'node')}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 100 else f"{seconds:.0f} s"


def _GiB(nbytes: float) -> str:
    return f"{nbytes / 2**30:.2g} GiB" if nbytes < 100 * 2**30 else f"{nbytes / 2**30:.0f} GiB"
