"""A process gives back what it has freed, in whatever thread and whatever small blocks came after it."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="resident memory is read as Linux tells it"
)
RESIDENT = """
import sys, threading
from pathlib import Path
import numpy as np
from orienteer.live.allocator import give_back_freed_memory, take_large_blocks_one_by_one

def resident_MiB():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20

before = resident_MiB()
"""
AFTER_SMALL_BLOCKS = """
kept = []
for n_MiB in (16, 15, 14, 13, 12):
    batch = [np.ones(n_MiB * 2**17) for _ in range(4)] + [np.ones(2**13) for _ in range(400)]
    kept.append(np.ones(2**13))
    del batch
grown_MiB = resident_MiB() - before
if not give_back_freed_memory():
    sys.exit("cannot be told")
print(grown_MiB, resident_MiB() - before)
"""
OF_A_THREAD = """
def receive():
    for n_MiB in (8, 6, 7):
        message = np.ones(n_MiB * 2**17)
        del message
        reached.append(resident_MiB() - before)
    reached.append("wait")
    may_end.wait()

def left_by_thread():
    global reached, may_end
    reached, may_end = [], threading.Event()
    thread = threading.Thread(target=receive)
    thread.start()
    while "wait" not in reached:
        pass
    give_back_freed_memory()
    left = resident_MiB() - before
    may_end.set()
    thread.join()
    return left

if sys.argv[1:] == ["told"] and not take_large_blocks_one_by_one():
    sys.exit("cannot be told")
print(left_by_thread())
"""


def told_by(script: str, *words: str) -> list[float]:
    done = subprocess.run([sys.executable, "-c", RESIDENT + script, *words], capture_output=True, text=True)
    if "cannot be told" in done.stderr:
        pytest.skip("the C library of this system cannot be told to give memory back")
    return [float(word) for word in done.stdout.split()]


def test_what_was_freed_is_given_back_whatever_came_after_it() -> None:
    grown_MiB, left_MiB = told_by(AFTER_SMALL_BLOCKS)
    assert grown_MiB > 20  # what is mended
    assert left_MiB < 5


def test_a_thread_keeps_no_room_for_large_messages() -> None:
    assert told_by(OF_A_THREAD)[0] > 5  # what is mended
    assert told_by(OF_A_THREAD, "told")[0] < 2
