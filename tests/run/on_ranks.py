"""A run of several ranks as a program: ``mpiexec -n N python on_ranks.py DIRECTORY KEY=VALUE ...``.

Every rank does a part of each step, and the parts are added through a comm, so that a rank which is lost in
the middle of a step leaves the others waiting.  The numbers are the same on any number of ranks.
"""

import errno
import os
import signal
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field
from recurrence import N_FRAMES, Recurrence, RecurrenceSettings, small_source

import orienteer
from orienteer.compute.ranks.world import world
from orienteer.errors import DeviceError, OrienteerError
from orienteer.run import crew_checks, shards, state_file
from orienteer.run import run as run_module
from orienteer.run.crew import PATIENCE_S, crew
from orienteer.run.method import MethodKind, register_method
from orienteer.run.run import Run
from orienteer.run.signals import RunStopped


class SharedSettings(RecurrenceSettings):
    bad_rank: int = Field(default=-1, description="The rank to which something happens.")
    bad_step: int = Field(default=0, description="In this step.")
    what: str = Field(default="", description="What happens to it.")
    once: str = Field(default="", description="A file; while it is there, nothing happens.")
    held: str = Field(default="", description="A file; while it is there, the last step does not end.")


class Shared(Recurrence):
    """Each rank multiplies its part of the voxels; sums put them together."""

    settings: SharedSettings

    def step(self) -> Any:
        self._happen()
        self._hold()
        comm = world()
        models = self._models.reshape(-1)
        part = np.zeros_like(models)
        share = comm.share(len(models))
        part[share] = models[share]
        self._models = comm.sum(part).reshape(self._models.shape)
        done = super().step()
        bad = ("late memory", self.settings.bad_rank, self.settings.bad_step)
        if (self.settings.what, crew().rank, self.iteration) == bad:
            raise MemoryError
        if (self.settings.what, crew().rank) == ("rounding", self.settings.bad_rank):
            self._models = np.nextafter(self._models, np.float32(2))
        return done

    def state(self) -> dict[str, Any]:
        settings = self.settings
        bad = ("signal while it is saved", settings.bad_rank, settings.bad_step)
        if (settings.what, crew().rank, self.iteration) == bad:
            os.kill(os.getpid(), signal.SIGTERM)
        return super().state()

    def _hold(self) -> None:
        """Wait in the last step for whatever is to happen before the end; not for ever, should it not."""
        end = time.monotonic() + 60
        is_last = self.iteration + 1 == self.settings.steps
        while is_last and self.settings.held and Path(self.settings.held).exists() and time.monotonic() < end:
            time.sleep(0.01)

    def _happen(self) -> None:
        settings = self.settings
        if (crew().rank, self.iteration + 1) != (settings.bad_rank, settings.bad_step):
            return
        if settings.once:
            if Path(settings.once).exists():
                return
            Path(settings.once).touch()
        if settings.what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif settings.what == "freeze":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif settings.what == "defect":
            raise ZeroDivisionError("the step fails")
        elif settings.what == "memory":
            raise MemoryError
        elif settings.what == "error":
            raise OrienteerError("the lamp is broken.", "Mend it.")
        elif settings.what == "hang":
            time.sleep(600)
        elif settings.what == "signal":
            os.kill(os.getpid(), signal.SIGTERM)
        elif settings.what == "full disk":
            state_file.write_state_file = shards.write_state_file = _full


def _full(path: Path, *_: Any) -> str:
    from orienteer.compute.reading import writing

    with writing(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return ""


def _choose_device(device: str) -> str:
    """There is none for one rank, which knows it long before the others have found theirs."""
    if crew().rank == 1:
        raise DeviceError("there is no lamp.", "Bring one.")
    time.sleep(1.5 * PATIENCE_S)
    return device


def _choose_method(*_: Any) -> tuple[str, str]:
    print(f"chosen by {crew().rank}", flush=True)
    return "shared", "It is the only one."


register_method(MethodKind("shared", SharedSettings, Shared))


def main() -> int:
    given = tomllib.loads("\n".join(sys.argv[2:]))
    other = given.pop("other", {})
    if crew().rank == 1:
        given |= other
    shards.SHARD_BYTES = given.pop("shard_bytes", shards.SHARD_BYTES)
    version, method = given.pop("other_version", ""), given.pop("method", "shared")
    if version and crew().rank == 1:
        orienteer.__version__ = version
    if given.pop("no_device", False):
        run_module.choose_device = crew_checks.choose_device = _choose_device
    if method == "auto":
        run_module.choose_method = _choose_method
    notice_s, hang_s = given.pop("notice_s", 10.0), given.pop("hang_s", 60.0)
    seed, restart, n_steps = given.pop("seed", 3), given.pop("restart", False), given.pop("n_steps", None)
    folder = given.pop("folder", sys.argv[1])
    source = small_source(n_frames=given.pop("n_frames", N_FRAMES))
    try:
        run = Run.create(
            folder, source, SharedSettings(**given), seed=seed, device="cpu", method=method, restart=restart
        )
        run.notice_s, run.hang_s = notice_s, hang_s
        for done in run.iterate(n_steps):
            if crew().leads:
                print(done.iteration, flush=True)
    except RunStopped as stopped:
        if crew().leads:
            print(stopped, file=sys.stderr)
        return stopped.exit_status
    except OrienteerError as error:
        if crew().leads:
            print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
