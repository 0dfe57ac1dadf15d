"""``orienteer demo``: everything from simulated patterns to a report."""

import contextlib
import io
import shlex
import time
from pathlib import Path
from typing import Annotated

import typer

from orienteer.cli.console import messages, output, print_json
from orienteer.cli.options import AsJson, Device
from orienteer.cli.stopping import leave, telling_when_stopped
from orienteer.compute.atomic import atomic_path
from orienteer.compute.words import time_in_words
from orienteer.errors import FileError

# The particle, beam and detector of both demos: a virus-like particle.
VIRUS = """\
[particle]
structure = "virus"
diameter_A = 300

[beam]
photon_energy_eV = 4600

[detector]
pixels = 64
edge_resolution_A = 30
beam_stop_radius_pixels = 2
"""
SETTINGS = f"""\
# The experiment of the demo: a virus-like particle in an imperfect beam.
{VIRUS}
[simulate]
frames = 1200
photons_per_frame = 8000
fluence_jitter = 0.3
empty_fraction = 0.02

# The only prior knowledge: viruses are icosahedral.
[emc]
symmetry = "I"
resolution_A = 30

[phase]
starts = 7

[validation]
replicates = 8
"""


def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Where to put all files of the demo.")
    ] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Seed of every random draw.", min=0)] = 1,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Simulate a virus-like particle, find its density blind, and report how far to trust it."""
    begun = time.monotonic()
    settings, frames, run = begin_demo(out, SETTINGS, seed), out / "frames.h5", out / "run"
    common = ["--settings", settings, "--device", device]
    with (
        telling_when_stopped(*how_a_demo_goes_on(out)),
        contextlib.redirect_stdout(io.StringIO()) if as_json else contextlib.nullcontext(),
    ):
        if not frames.exists():
            carry_out("simulate", *common, "--out", frames)
            carry_out("inspect", frames, "--picture", out / "frames.png")
        carry_out("reconstruct", frames, *common, "--seed", seed, "--out", run)
        carry_out("phase", run, *common)
        carry_out("validate", run, *common)
        carry_out("report", run)
    _tell(run, time.monotonic() - begun, as_json)


def begin_demo(out: Path, told: str, seed: int) -> Path:
    """Write the settings of a demo and its seed into its folder; a demo with the same settings continues."""
    settings, text = out / "demo.toml", told.replace("[simulate]\n", f"[simulate]\nseed = {seed}\n")
    try:
        out.mkdir(parents=True, exist_ok=True)
        if settings.exists() and settings.read_text() != text:
            raise FileError(
                out, "holds a demo with another seed or from another version.", "Give another --out."
            )
        with atomic_path(settings) as path:
            path.write_text(text)
    except OSError as error:
        raise FileError(
            out, f"cannot be used as a folder ({error.strerror}).", "Give another --out."
        ) from error
    return settings


def how_a_demo_goes_on(out: Path) -> tuple[str, str]:
    """Message and hint for a demo that was stopped between two of its commands."""
    return f"Stopped; what is done is kept in {out}.", "The same command continues."


def carry_out(command: str, *arguments: object) -> None:
    """Run a command as if it had been typed, and show it, so that people can type it themselves."""
    from orienteer.cli.main import app

    words = [command, *map(str, arguments)]
    messages.print(f"\n$ orienteer {shlex.join(words)}", style="bold cyan", markup=False, soft_wrap=True)
    # Typer turns Ctrl-C into an exit status; without this check the next command would begin.
    if status := app(words, prog_name="orienteer", standalone_mode=False):
        leave(int(status), "Stopped.")


def _tell(run: Path, seconds: float, as_json: bool) -> None:
    from orienteer.validate.result import read_validation

    found = read_validation(run)
    assert found is not None
    report = run / "report.html"
    if as_json:
        print_json({"run": str(run), "report": str(report), "seconds": seconds, "validation": found})
        return
    output.print(f"\nAll of it took {time_in_words(seconds)}.", markup=False)
    output.print(str(found["statement"]), style="bold", markup=False, soft_wrap=True)
    output.print(f"Open   {shlex.quote(str(report))}", style="bold", markup=False, soft_wrap=True)
