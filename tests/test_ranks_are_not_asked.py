"""Science code takes its share of the work and never asks which rank it is."""

import re
from pathlib import Path

import pytest

import orienteer

PACKAGE = Path(orienteer.__file__).parent
# Folders that know frames, volumes and physics, and the one of them that places data in memories of ranks.
SCIENCE = [
    "detector", "orientation", "particle", "fourier", "slicing", "volume", "compare", "phase", "source",
    "likelihood", "posterior", "simulation", "reconstruction", "mtip", "validate",
]  # fmt: skip
PLACES_DATA = PACKAGE / "mtip" / "references"
ASKS = re.compile(
    r"mpi4py|Get_rank|\.rank\b|COMM_WORLD|ranks\.mpi\b|ranks\.launchers\b|\.is_first\b|\bshare\([\w.]*size\)"
)
# Places that may ask, with the words that do, and why.
MAY_ASK = {
    "reconstruction/orienting/fine_search.py": (
        "if self.comm.is_first else",
        "junk classes belong to no coarse pose, so no share has them: one rank must, and all ranks add it up",
    ),
}


def questions(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if ASKS.search(line)]


@pytest.mark.parametrize("folder", SCIENCE)
def test_science_does_not_ask_for_its_rank(folder: str) -> None:
    asking = [
        f"{name}: {line}"
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        if not path.is_relative_to(PLACES_DATA)
        for name in [path.relative_to(PACKAGE).as_posix()]
        for line in questions(path.read_text())
        if name not in MAY_ASK or MAY_ASK[name][0] not in line
    ]
    assert not asking


@pytest.mark.parametrize("name", MAY_ASK)
def test_what_may_ask_does_so_once(name: str) -> None:
    assert len(questions((PACKAGE / name).read_text())) == 1


@pytest.mark.parametrize(
    "line",
    [
        "from mpi4py import MPI",
        "if comm.rank == 0:",
        "if self.comm.is_first:",
        "number = comm.share(comm.size).start",
        "number = share(size).start",
    ],
)
def test_every_way_to_ask_is_seen(line: str) -> None:
    assert questions(line)
