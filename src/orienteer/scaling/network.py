"""Network: what collectives of many ranks cost.

A sum of an array over n ranks takes two exchanges: in the first, every rank gets one part of the array from
all others; in the second, every rank gets all summed parts.  So each rank sends 2 (n - 1) messages and
2 (n - 1) / n times the array.  Gathering the rows of all ranks takes one exchange of n - 1 messages, and what
one rank has for all others goes out in as many.
Messages follow each other:

    seconds = messages latency + bytes / bandwidth
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Network:
    """The performance of the links between ranks, as one rank sees it.

    latency_s : of a message; bandwidth : bytes per second that a rank sends while all ranks send.
    is_assumed : whether the numbers are from a data sheet and not measured with this program.
    source : where the numbers come from, in words.
    """

    name: str
    latency_s: float
    bandwidth: float
    is_assumed: bool
    source: str


@dataclass(frozen=True)
class Collective:
    """Messages and bytes that one rank sends."""

    messages: float = 0.0
    n_bytes: float = 0.0

    def __add__(self, other: "Collective") -> "Collective":
        return Collective(self.messages + other.messages, self.n_bytes + other.n_bytes)

    def __mul__(self, times: float) -> "Collective":
        return Collective(self.messages * times, self.n_bytes * times)

    def seconds(self, network: Network) -> float:
        """How long it takes on a network."""
        return self.messages * network.latency_s + self.n_bytes / network.bandwidth


def summed(n_bytes: float, n_ranks: int) -> Collective:
    """A sum of an array of ``n_bytes`` over n ranks.

    >>> summed(100.0, 4)
    Collective(messages=6.0, n_bytes=150.0)
    """
    return Collective(2.0 * (n_ranks - 1), 2 * (n_ranks - 1) / n_ranks * n_bytes)


def gathered(own_bytes: float, n_ranks: int) -> Collective:
    """Gather the rows of all ranks on all of them; those of one rank have ``own_bytes``."""
    return Collective(float(n_ranks - 1), (n_ranks - 1) * own_bytes)


def sent_to_all(n_bytes: float, n_ranks: int) -> Collective:
    """An array of ``n_bytes`` of one rank for all others; the mean over ranks.

    >>> sent_to_all(100.0, 4)
    Collective(messages=3.0, n_bytes=75.0)
    """
    return Collective(float(n_ranks - 1), (n_ranks - 1) / n_ranks * n_bytes)


# Data sheets give the bandwidth per direction; programs reach about this share of it.
_USABLE = 0.8

NETWORKS = {
    "ndr": Network(
        "NDR InfiniBand", 2e-6, _USABLE * 50e9, True,
        "one 400 Gbit/s adapter per GPU, as in eight-GPU H200 nodes; 80 % of it, and 2 us, are assumed",
    ),
    "slingshot": Network(
        "Slingshot 11", 2e-6, _USABLE * 25e9, True,
        "one 200 Gbit/s adapter per GPU, as GPU nodes of Perlmutter have; 80 % of it, and 2 us, are assumed",
    ),
    "qdr": Network(
        "QDR InfiniBand", 2e-6, 1e9, True,
        "32 Gbit/s per node of four GPUs, as the cluster of Ekeberg, Engblom and Liu had; 2 us are assumed",
    ),
    "node": Network(
        "memory of a node of GPUs", 1e-6, 20e9, True,
        "copies through shared memory while all ranks of the node make them; both numbers are assumed",
    ),
    "memory": Network(
        "memory of one machine", 1e-6, 2e9, True,
        "copies through shared memory of a small machine; both numbers are assumed",
    ),
}  # fmt: skip
