"""What launchers of ranks set in the environment of each; only ``load_mpi`` loads MPI."""

import os
from collections.abc import Iterable
from typing import Any

from orienteer.compute.extras import how_to_install
from orienteer.errors import OrienteerError

# Number of a rank, and how many there are: MPICH and its relatives, Open MPI, MVAPICH.
_VARIABLES = (
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
)
# This one comes without a size.
_PMIX_RANK = "PMIX_RANK"
# Slurm gives the number of tasks it has started, whether or not they can communicate.
_TASKS_OF_SLURM = "SLURM_STEP_NUM_TASKS"


def is_launched() -> bool:
    """Whether a launcher has started this process as one of several ranks; MPI itself is not asked."""
    return max(_numbers(size for _, size in _VARIABLES), default=1) > 1 or _PMIX_RANK in os.environ


def n_launched() -> int:
    """Ranks that were started together, as far as the environment shows; their MPI may not be ours."""
    return max(_numbers([*(size for _, size in _VARIABLES), _TASKS_OF_SLURM]), default=1)


def launched_rank() -> int | None:
    """The number of this rank; None if the environment does not give it."""
    return next(iter(_numbers([*(rank for rank, _ in _VARIABLES), _PMIX_RANK])), None)


def load_mpi() -> Any:
    """MPI of mpi4py, for a process that was launched as one of several."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise OrienteerError(
            "several ranks were started, but they cannot communicate: mpi4py is not installed.",
            f"Install it: {how_to_install('mpi')}.",
        ) from error
    return MPI


def _numbers(names: Iterable[str]) -> list[int]:
    return [int(text) for name in names if (text := os.environ.get(name, "")).isdigit()]
