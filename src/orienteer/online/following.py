"""follow: a growing reconstruction in a folder, from the first hit to the last."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import DeviceName, choose_device
from orienteer.errors import OrienteerError
from orienteer.online.arrivals import Select
from orienteer.online.online_emc import OnlineEmc
from orienteer.run.arguments import as_folder, as_seed
from orienteer.run.beginning import begin_or_resume
from orienteer.run.directory import RunDirectory
from orienteer.run.events import EventLog, read_events
from orienteer.run.input import describe_input, hash_detector
from orienteer.run.lock import RunLock
from orienteer.run.method import Step, find_method
from orienteer.run.session import Session
from orienteer.run.settings import Settings
from orienteer.run.signals import RunStopped
from orienteer.source.base import Source
from orienteer.source.left_out import without_events
from orienteer.source.part import PartOfSource

# Seconds to wait before looking for hits again, if there is nothing else to do.
PAUSE_S = 0.5
_MOST_NAMED = 10_000
_TURNS = ("started", "resumed", "finished")


def follow(
    source: Source,
    folder: str | os.PathLike[str],
    settings: Settings | None = None,
    *,
    seed: int = 0,
    device: DeviceName = "auto",
    is_over: Callable[[], bool] = lambda: True,
    select: Select | None = None,
    on_step: Callable[[Step], None] | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
    excluded: Callable[[], NDArray[np.uint64] | None] = lambda: None,
    pause_s: float = PAUSE_S,
) -> None:
    """Reconstruct from the hits that a source has, and from those still to come, until it is over.

    The folder is a run like any other, and can be viewed while it grows.  If the process is killed, the same
    call continues from the last checkpoint.

    Parameters
    ----------
    source : hits with a detector; new ones are appended.
    settings : only ``[emc]`` and ``[online]`` are used.
    is_over : whether the source already has every hit that will ever come; true by default.
    select : columns (n, ...) by name in, (n,) bool out: the hits that are taken.
    on_step : called after every step.
    is_stopping : whether to stop for now; asked between two steps, and while no hits come.
    excluded : (n,) events that take no part, asked for before each step; None: the same as before.
    """
    settings = settings or Settings()
    directory = RunDirectory(as_folder(folder))
    if source.detector is None:
        raise OrienteerError(
            "the detector geometry of these hits is not known.", "Give the detector: --geometry FILE."
        )
    if _is_finished(directory):
        return
    described = begin_or_resume(
        directory, find_method("emc"), settings.emc, source, as_seed(seed), device, restart=False,
        given=_what_stays(source),
    )  # fmt: skip
    used = choose_device(device)
    with RunLock(directory.path):
        method = OnlineEmc(
            source, settings.emc, settings.online, seed=seed, device=used, select=select
        )  # fmt: skip
        session = Session(directory, described["run_id"], method, settings.emc)
        session.begin(False, used)
        try:
            while not is_stopping():
                # Ask this before looking for hits, so that hits arriving in between are still found.
                with session.noting_failure():
                    over = is_over()
                    method.look(over, excluded())
                if method.has_work:
                    step = session.advance()
                    if on_step is not None:
                        on_step(step)
                elif not method.finished:
                    session.keep()
                    time.sleep(pause_s)
                if method.finished:
                    _end(directory, session, method)
                    return
            session.leave()
        except RunStopped:  # already noted in the log
            raise
        except (KeyboardInterrupt, SystemExit):
            # Hits may have been only partly taken in: save nothing.
            session.note_stop(abandoned=True)
            raise
        finally:
            session.let_files_end()  # before others may use the folder


def _is_finished(directory: RunDirectory) -> bool:
    turns = [event["event"] for event in read_events(directory.events) if event["event"] in _TURNS]
    return bool(turns) and turns[-1] == "finished"


def _what_stays(source: Source) -> dict[str, Any]:
    """The facts of a source that do not change while it grows."""
    assert source.detector is not None
    return {
        "path": None if source.path is None else os.path.abspath(source.path),
        "format": source.format,
        "frames": None,
        "frame_shape": list(source.frame_shape),
        "data": None,
        "detector": hash_detector(source.detector),
        "polarisation": source.polarisation,
        "wavelength_A": None,
        "grows": True,
    }


def _end(directory: RunDirectory, session: Session, method: OnlineEmc) -> None:
    """Finish the run, and describe its input as if all data had been there from the beginning."""
    if not _is_finished(directory):
        if method.iteration:
            session.finish()
        else:
            EventLog(directory.events).append("finished", iteration=0, reason=method.reason)
    chosen, source = method.arrivals.chosen, method.source
    if not len(chosen):
        return
    ids = source.event_ids()
    left_out = np.setdiff1d(ids, ids[chosen])
    # Events that were left out are listed only if they are few; otherwise the run cannot reopen its data.
    is_named = len(left_out) <= _MOST_NAMED
    whole = without_events(source, left_out) if is_named else PartOfSource(source, chosen, "chosen hits")
    directory.note(input=describe_input(whole))
