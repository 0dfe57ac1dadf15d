"""Steps of a small reconstruction on however many ranks there are: what they send, and the model's figure.

Arguments: method, mesh, number of steps, and settings as name=value.  The first rank prints JSON.
"""

import ast
import json
import sys
from typing import Any

import numpy as np

from made_up_frames import DIAMETER_A, made_up_frames
from orienteer.compute.ranks.mesh import Mesh
from orienteer.compute.ranks.sharing import use_threads
from orienteer.compute.ranks.world import world
from orienteer.mtip.mtip import Mtip
from orienteer.mtip.settings import MtipSettings
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.settings import EmcSettings
from orienteer.scaling.problem import Problem
from orienteer.scaling.traffic import traffic_of

METHODS: dict[str, tuple[Any, Any]] = {"emc": (Emc, EmcSettings), "mtip": (Mtip, MtipSettings)}


def main(method: str, shape: str, n_steps: str, *given: str) -> None:
    use_threads(1)
    settings = {name: ast.literal_eval(value) for name, value in (each.split("=", 1) for each in given)}
    make, section = METHODS[method]
    if phase_at_once := settings.pop("phase_at_once", False):  # and not only when halves agree
        Mtip._is_too_early = lambda self, model: False  # type: ignore[method-assign]
    mesh = Mesh.of(world(), shape)
    source = made_up_frames(settings.pop("frames", 300), settings.pop("pixels", 17))
    run = make(source, section(diameter_A=DIAMETER_A, **settings), seed=1, device="cpu", mesh=mesh)
    steps = []
    for _ in range(int(n_steps)):
        work, before, stride = run.work, mesh.sent_bytes, run.annealing.stride
        n_here, asked = int(run.frames.is_here.sum()), run.watch
        run.step()
        sent = mesh.all.gather(mesh.sent_bytes - before)
        problem = Problem(
            int((~run.sentinel).sum()),
            len(work.places),
            work.n_poses,
            work.edge_voxels,
            n_halves=run.n_halves,
            method="mtip" if method == "mtip" else "emc",
            oversampling=run.speckle,
        )
        size = -(-mesh.all.size // mesh.n_groups)
        model = traffic_of(
            problem, size, mesh.n_groups, stride=stride,
            sentinels=int(run.sentinel.sum()) if run.watch is not asked else 0,
            frame_bytes=0 if steps else run.frames.nbytes / n_here,
            phases=phase_at_once,
        )  # fmt: skip
        steps.append({"sent": float(np.mean(sent)), "model": model.n_bytes, "parts": model.by_part})
    if mesh.all.is_first:
        print(json.dumps(steps))


if __name__ == "__main__":
    main(*sys.argv[1:])
