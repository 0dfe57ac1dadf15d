"""``orienteer live --demo``: a simulated experiment, replayed as a stream, from the first shot to a map."""

import contextlib
import io
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from orienteer.cli.console import messages
from orienteer.cli.demo import VIRUS, begin_demo, carry_out, how_a_demo_goes_on
from orienteer.cli.live import receive, tell, without_password
from orienteer.cli.stopping import telling_when_stopped

# Shots per second: the whole stream lasts less than half a minute.
RATE_HZ = 250
SETTINGS = f"""\
# The experiment of the live demo: about one shot in eight meets a virus-like particle.
{VIRUS}
[simulate]
frames = 5000
photons_per_frame = 8000
fluence_jitter = 0.3
empty_fraction = 0.85
junk_fraction = 0.015
multiple_fraction = 0.015
background_photons = 1000

# The only prior knowledge: viruses are icosahedral.
[emc]
symmetry = "I"
resolution_A = 30
starts = 1

[online]
first_hits = 200
"""


def run_demo(
    out: Path,
    overrides: Sequence[str],
    seed: int,
    device: str,
    seconds: float,
    notice_s: float,
    as_json: bool,
    into: tuple[str, str] = ("", ""),
) -> None:
    """Simulate (once), replay from another process, receive, and draw the map at the end.

    into : the campaign to record the shots in, and the name of the sample; empty: none.
    """
    from orienteer.run.settings import Settings
    from orienteer.settings.loading import load_settings
    from orienteer.stream.sockets import import_zmq

    import_zmq()  # fails before anything is simulated if it is not installed
    file = begin_demo(out, SETTINGS, seed)
    settings = load_settings(Settings, file, overrides)
    frames, run = out / "frames.h5", out / "run"
    with (
        telling_when_stopped(*how_a_demo_goes_on(out)),
        contextlib.redirect_stdout(io.StringIO()) if as_json else contextlib.nullcontext(),
    ):
        if not frames.exists():
            carry_out("simulate", "--settings", file, "--device", device, "--out", frames)
        with _replayed(frames) as address:
            campaign, sample = into
            command = ["orienteer", "live", "--source", address, "--out", str(run)]
            command += ["--campaign", without_password(campaign)] if campaign else []
            command += ["--sample", sample] if sample else []
            messages.print(f"\n$ {shlex.join(command)}", style="bold cyan", markup=False, soft_wrap=True)
            if find_spec("fastapi") is not None:
                page = f"orienteer serve {shlex.quote(str(out))}"
                messages.print(f"On a page, from another terminal: {page}", markup=False, soft_wrap=True)
            facts = {"sources": {"replay": address}, "filter": "", "seed": seed, "device": device}
            facts |= {"sample": sample} if sample else {}
            folder = receive(run, facts, settings, campaign, seconds, notice_s, as_json)
        more: dict[str, Any] = {}
        if (folder.map / "intensity.h5").exists():
            more = {"map": str(folder.map), "picture": str(out / "map.png")}
            carry_out("plot", folder.map, "--out", out / "map.png")
    tell(folder, as_json, **more)


@contextmanager
def _replayed(frames: Path) -> Iterator[str]:
    """Serve the frames from another process during the block; gives its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    words = ["replay", str(frames), "--to", address, "--rate", str(RATE_HZ), "--dense"]
    messages.print(f"\n$ orienteer {shlex.join(words)}", style="bold cyan", markup=False, soft_wrap=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "orienteer", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield address
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
