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
ASKS = re.compile(r"mpi4py|Get_rank|\.rank\b|COMM_WORLD|ranks\.mpi\b")


@pytest.mark.parametrize("folder", SCIENCE)
def test_science_does_not_ask_for_its_rank(folder: str) -> None:
    asking = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        if not path.is_relative_to(PLACES_DATA)
        for line in path.read_text().splitlines()
        if ASKS.search(line)
    ]
    assert not asking
