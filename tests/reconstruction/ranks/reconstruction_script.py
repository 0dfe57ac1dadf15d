"""A small reconstruction on however many ranks there are; the first of them writes what came of it.

Arguments: method, mesh, balance, steps, file of the result, and settings as name=value.
"""

import ast
import sys
from typing import Any

import numpy as np

from made_up_frames import DIAMETER_A, made_up_frames
from orienteer.compute.ranks.mesh import Mesh
from orienteer.compute.ranks.sharing import use_threads
from orienteer.compute.ranks.world import world
from orienteer.mtip.mtip import Mtip
from orienteer.mtip.settings import MtipSettings
from orienteer.reconstruction.course import ladder
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.settings import EmcSettings

METHODS: dict[str, tuple[Any, Any]] = {"emc": (Emc, EmcSettings), "mtip": (Mtip, MtipSettings)}


def main(method: str, shape: str, balance: str, n_steps: str, file: str, *given: str) -> None:
    use_threads(1)
    settings = {name: ast.literal_eval(value) for name, value in (each.split("=", 1) for each in given)}
    make, section = METHODS[method]
    if settings.pop("two_passes", False):  # which grids of thousands of poses have
        ladder._MOST_AT_ONCE["cpu"], ladder._COARSEST_LEVEL = 10, 2
    if settings.pop("phase_at_once", False):  # and not only when halves have something in common
        Mtip._is_too_early = lambda self, model: False  # type: ignore[method-assign]
    half_sets = settings.get("half_sets", "auto")
    mesh = Mesh.of(world(), shape, half_sets=half_sets, dynamic=balance == "dynamic")
    n_frames, n_pixels = settings.pop("frames", 90), settings.pop("pixels", 17)
    photons, simulate = settings.pop("photons", 600.0), settings.pop("simulate", {})
    source = made_up_frames(n_frames, n_pixels, photons, **simulate)
    run = make(source, section(diameter_A=DIAMETER_A, **settings), seed=1, device="cpu", mesh=mesh)
    steps = []
    while not run.finished and len(steps) < int(n_steps):
        steps.append(run.step())
    table = run.orientations()
    for name, column in table.items():
        assert all((other == column).all() for other in mesh.all.gather(column)), name
    if mesh.all.is_first:
        values = np.stack([volume.values for volume in run.volumes()])
        told = {"nats": [step.log_likelihood for step in steps], "sent": [step.sent_bytes for step in steps]}
        np.savez(file, values=values, **told, **{f"table_{name}": table[name] for name in table})


if __name__ == "__main__":
    main(*sys.argv[1:])
