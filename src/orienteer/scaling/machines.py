"""Machines: how fast one rank of a known kind is, and where the numbers come from.

``tests/scaling/test_machines.py`` fits the rates again to the stored measurements and compares.
"""

from dataclasses import dataclass

from orienteer.compute.arrays import DeviceName
from orienteer.scaling.network import NETWORKS, Network
from orienteer.scaling.rates import Rates


@dataclass(frozen=True)
class Machine:
    """Nodes of one kind, joined by a network.

    rates : of one rank, which is a GPU or a core.
    memory_GiB : of one rank.
    ranks_per_node : ranks that share a node; they communicate by ``near``, others by ``network``.
    copy_bandwidth : bytes per second between device and host, through which collectives go; 0: no copies.
    memory_bandwidth : bytes per second of a rank's own memory.
    host_GiB : host memory that a rank may use; it holds the table of all frames.
    judge_s : seconds per pixel of a frame to judge it by the new models: its fluence, and whether it is junk.
    """

    name: str
    device: DeviceName
    rates: Rates
    memory_GiB: float
    ranks_per_node: int
    network: Network
    near: Network
    copy_bandwidth: float = 0.0
    judge_s: float = 0.0
    memory_bandwidth: float = 5e9
    host_GiB: float = 8.0


H200_RATES = Rates(
    {
        "expand": {"points": 1.129e-11},
        "score": {"pairs": 5.055e-13, "products": 2.224e-15},
        "posterior": {"pairs": 8.019e-12},
        "fluence": {"pairs": 3.972e-13},
        "merge": {"pairs": 2.235e-12, "products": 2.358e-15},
        "insert": {"points": 3.328e-11},
        "compress": {"voxels": 2.796e-10},
        "other": {"once": 1.396e-3},
    },
    # 100 starts x 1 000 iterations of two transforms of 128^3 in 4.2 s.
    transform_s=1.0e-11,
    source="fitted to iterations on one H200, Poisson, flat posteriors, one float16 term: "
    "bench/results/emc_cuda.json; transforms: bench/results/phase_cuda.json",
)
CORE_RATES = Rates(
    {
        "expand": {"points": 1.592e-08},
        "score": {"pairs": 0.0, "products": 6.472e-11},
        "posterior": {"pairs": 9.705e-09},
        "fluence": {"pairs": 1.348e-09},
        "merge": {"pairs": 3.966e-08, "products": 2.568e-11},
        "insert": {"points": 1.385e-08},
        "compress": {"voxels": 1.226e-08},
        "other": {"once": 9.28e-4},
    },
    transform_s=7.13e-09,
    source="fitted to iterations on cores of a shared EPYC machine, in time of the processors: "
    "bench/results/scaling_cpu.json",
)

# Each H200 of an eight-GPU node has 141 GB, of which driver and libraries leave about this much.
_H200_GiB = 130.0
# Such nodes have 2 TiB of memory; this part of an eighth of it is assumed to be free.
_H200_HOST_GiB = 0.75 * 256
# Between device and host: PCIe 5 x16 has 64 GB/s nominally; this share of it is assumed.
_PCIE = 0.6 * 64e9
# Bytes per second of a copy on the device, reads and writes together, as measured.
_H200_MEMORY = 4.2e12
# Bytes per pixel that are read and written when frames are judged, as in the plan of a run.
_JUDGED = 34

MACHINES = {
    "h200": Machine(
        name="each one H200", device="cuda", rates=H200_RATES, memory_GiB=_H200_GiB, ranks_per_node=8,
        network=NETWORKS["ndr"], near=NETWORKS["node"], copy_bandwidth=_PCIE,
        judge_s=_JUDGED / _H200_MEMORY, memory_bandwidth=_H200_MEMORY,
        host_GiB=_H200_HOST_GiB,
    ),
    "cores": Machine(
        name="each one core", device="cpu", rates=CORE_RATES, memory_GiB=8.0, ranks_per_node=1024,
        network=NETWORKS["memory"], near=NETWORKS["memory"], judge_s=7.4e-8,
    ),
}  # fmt: skip
