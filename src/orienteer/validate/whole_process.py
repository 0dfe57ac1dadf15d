"""The density of a run, or the errors of its voxels, in a process that prepares before the run has ended.

``python -m orienteer.validate.whole_process`` reads a line of JSON and prepares.  A second line means that
the run has finished.  Then it works, while another process compares the halves, and reports on its standard
output when it is done.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from orienteer.compute.arrays import choose_device
from orienteer.compute.machine import limit_cores
from orienteer.phase.phasing import phase
from orienteer.phase.settings import PhaseSettings
from orienteer.run.directory import RunDirectory
from orienteer.run.files import VALIDATION
from orienteer.run.run import Run
from orienteer.run.validation_settings import ValidationSettings
from orienteer.validate.half_phasing import phase_run
from orienteer.validate.half_process import end_with_the_other, say_done
from orienteer.validate.voxel_errors import voxel_errors
from orienteer.volume.volume import Volume

_PATIENCE_S, _GLANCE_EVERY_S = 10.0, 0.05


def main() -> None:
    """Do the work that the lines on the standard input describe."""
    order: dict[str, Any] = json.loads(sys.stdin.readline())
    limit_cores(int(order["cores"]))
    if order["device"] != "cpu":
        _let_halves_begin(Path(order["path"]) / VALIDATION)
    device = choose_device(order["device"])
    if device == "cuda":
        _warm_up()
    if not sys.stdin.readline():
        return  # the other process has closed the pipe: the work is no longer needed
    threading.Thread(target=end_with_the_other, daemon=True).start()
    run = Run.open(order["path"])
    if order["work"] == "density":
        phase_run(run, PhaseSettings(**order["phasing"]), device)
    else:
        voxel_errors(run, ValidationSettings(**order["settings"]), device)
    say_done()


def _let_halves_begin(folder: Path) -> None:
    """Wait, but not too long, until the halves have begun: so they get to the GPU first."""
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until and not all(
        RunDirectory(folder / half).events.exists() for half in ("half_1", "half_2")
    ):
        time.sleep(_GLANCE_EVERY_S)


def _warm_up() -> None:
    """Load what phasing needs on the GPU, by phasing a small volume."""
    import numpy as np

    rng = np.random.default_rng(0)
    body = np.zeros((24, 24, 24))
    body[8:16, 8:16, 8:16] = rng.uniform(0.5, 1.0, (8, 8, 8))
    intensity = np.abs(np.fft.fftshift(np.fft.fftn(np.fft.ifftshift(body)))) ** 2
    settings = PhaseSettings(starts=2, schedule="3*dm 3*raar(0.87) 3*er", diameter_A=100.0)
    phase(Volume(intensity.astype(np.float32), 1 / 240, "reciprocal"), settings, device="cuda")


if __name__ == "__main__":
    main()
