"""A process gives back what it has freed also when small blocks that it keeps came after it."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
from pathlib import Path
import numpy as np
from orienteer.live.allocator import give_back_freed_memory

def resident_MiB():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20

kept, before = [], resident_MiB()
for n_MiB in (16, 15, 14, 13, 12):
    batch = [np.ones(n_MiB * 2**17) for _ in range(4)] + [np.ones(2**13) for _ in range(400)]
    kept.append(np.ones(2**13))
    del batch
grown_MiB = resident_MiB() - before
if not give_back_freed_memory():
    sys.exit("cannot be told")
print(grown_MiB, resident_MiB() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="resident memory is read as Linux tells it")
def test_what_was_freed_is_given_back_whatever_came_after_it() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    if "cannot be told" in done.stderr:
        pytest.skip("the C library of this system cannot be told to give memory back")
    grown_MiB, left_MiB = map(float, done.stdout.split())
    assert grown_MiB > 20  # what is mended
    assert left_MiB < 5
