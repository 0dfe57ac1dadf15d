"""A process gives large blocks back also when small ones that it keeps came after them."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
from pathlib import Path
import numpy as np
from orienteer.live.allocator import give_back_large_blocks

def resident_MiB():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20

if sys.argv[1] == "given back" and not give_back_large_blocks():
    sys.exit("cannot be told")
kept, before = [], resident_MiB()
for n_MiB in (16, 15, 14, 13, 12):
    batch = [np.ones(n_MiB * 2**17) for _ in range(4)]
    kept.append(np.ones(2**13))
    del batch
print(resident_MiB() - before)
"""


def grown_MiB(how: str) -> float:
    done = subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, text=True)
    if "cannot be told" in done.stderr:
        pytest.skip("the C library of this system cannot be told when to give memory back")
    return float(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="resident memory is read as Linux tells it")
def test_large_blocks_are_given_back_whatever_came_after_them() -> None:
    assert grown_MiB("given back") < 5
    assert grown_MiB("kept") > 20  # what is mended
