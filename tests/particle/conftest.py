"""Random numbers that are the same whichever tests run, and where larger test structures may lie."""

from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20)


@pytest.fixture(scope="session")
def chaperonins() -> tuple[Path, Path]:
    """PDB files of the open (3IYF) and the closed (3J03) chaperonin of Methanococcus maripaludis."""
    folder = Path(__file__).parents[3] / "shared" / "data"
    paths = folder / "3iyf.pdb.gz", folder / "3j03.pdb.gz"
    if not all(path.is_file() for path in paths):
        pytest.skip("needs 3iyf.pdb.gz and 3j03.pdb.gz in ../shared/data beside the repository")
    return paths
