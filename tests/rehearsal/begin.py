"""A rehearsal: the tests for the GPU on a machine without one.

``make rehearse``, or ``pytest -m gpu --rehearse``.  Nothing in this folder is active otherwise.  With the
sanitizer of addresses loaded (``make rehearse-memory``), a kernel that leaves the memory of its arrays ends
the process, and says where.

stand_in/      packages named ``cupy``, ``cupyx``, ``cufinufft``: arrays of NumPy behind CuPy's rules.  Arrays
               of the host are refused, functions that CuPy lacks do not exist (``cupy/names.txt``), and new
               memory holds NaN.
cuda_on_cpu/   a header and a scheduler, behind which g++ compiles the real CUDA sources.  Threads of a block
               run one after another and wait at barriers.  A barrier that some thread never reaches is an
               error; so are an argument that the kernel would read as another type, an index beyond the end
               of shared memory, and a vector that is not aligned.
left_out.py    tests that only a card can pass, and why.

What it cannot show: speed, memory of a card, tensor cores, races between blocks, work that overlaps, the
branches for ``__CUDA_ARCH__``, and whatever NVIDIA's libraries do differently from NumPy and SciPy.
"""

import os
import shutil
import sys
from pathlib import Path

STAND_IN = str(Path(__file__).with_name("stand_in"))


def begin() -> None:
    """Let this process, and all that it starts, find the stand-in under the name of CuPy."""
    if "cupy" in sys.modules:
        raise RuntimeError("CuPy is loaded already; a rehearsal must begin before")
    if shutil.which("g++") is None:
        raise RuntimeError("a rehearsal compiles CUDA sources with g++, and there is none")
    sys.path.insert(0, STAND_IN)
    os.environ["PYTHONPATH"] = os.pathsep.join([STAND_IN, *filter(None, [os.environ.get("PYTHONPATH")])])
