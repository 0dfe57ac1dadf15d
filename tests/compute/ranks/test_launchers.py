"""What the environment tells of a process that was started as one of several ranks."""

import os
import sys

import pytest

from orienteer.compute.ranks.launchers import is_launched, launched_rank, load_mpi, n_launched
from orienteer.errors import OrienteerError

PREFIXES = ("PMI", "OMPI", "MV2", "SLURM")


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(PREFIXES):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, (False, 1, None)),
        ({"PMI_RANK": "2", "PMI_SIZE": "4"}, (True, 4, 2)),
        ({"PMI_RANK": "0", "PMI_SIZE": "1"}, (False, 1, 0)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3", "PMIX_RANK": "1"}, (True, 3, 1)),
        ({"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "2"}, (True, 2, 1)),
        ({"PMIX_RANK": "5"}, (True, 1, 5)),
        ({"SLURM_STEP_NUM_TASKS": "6"}, (False, 6, None)),
        ({"PMI_SIZE": "many"}, (False, 1, None)),
    ],
)
def test_launchers_tell_ranks_in_their_own_ways(
    told: dict[str, str], expected: tuple[bool, int, int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert (is_launched(), n_launched(), launched_rank()) == expected


def test_a_missing_mpi4py_is_one_sentence_and_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(OrienteerError, match="mpi4py is not installed") as caught:
        load_mpi()
    assert "pip install" in caught.value.hint
