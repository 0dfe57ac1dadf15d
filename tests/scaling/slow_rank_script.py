"""Steps of a small reconstruction whose last rank is slow, with the logs of all ranks.

Arguments: folder of the logs, mesh, and dynamic or static.
"""

import sys
import time
from pathlib import Path
from typing import Any

from made_up_frames import DIAMETER_A, made_up_frames
from orienteer.compute.ranks.mesh import Mesh
from orienteer.compute.ranks.sharing import use_threads
from orienteer.compute.ranks.world import world
from orienteer.compute.stage_log import StageLog
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.orienting import expectation
from orienteer.reconstruction.settings import EmcSettings

# The slow rank rests after every tile, for many times as long as a tile takes even on a busy machine.
REST_S = 0.05


def main(folder: str, shape: str, balance: str) -> None:
    comm = world()
    use_threads(1)
    source = made_up_frames(400)
    mesh = Mesh.of(comm, shape, dynamic=balance == "dynamic")
    emc = Emc(source, EmcSettings(diameter_A=DIAMETER_A, level=4), seed=1, device="cpu", mesh=mesh)
    number = comm.share(comm.size).start
    if number == comm.size - 1:
        quick = expectation._score_tile

        def slow(*given: Any) -> Any:
            time.sleep(REST_S)
            return quick(*given)

        expectation._score_tile = slow
    with StageLog(Path(folder), number, comm.size) as log:
        for _ in range(4):
            log.iteration = emc.iteration + 1
            emc.step()
        log.write()


if __name__ == "__main__":
    main(*sys.argv[1:])
