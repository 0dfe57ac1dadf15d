"""``orienteer demo``: the main job on data that it makes itself, ending with a picture to open."""

from pathlib import Path
from typing import Annotated

import typer

from orienteer.cli.console import output, print_json
from orienteer.cli.inspect import look_at_patterns, print_report, save_picture
from orienteer.cli.options import AsJson, Device
from orienteer.cli.simulate import run_simulation
from orienteer.errors import FileError

SETTINGS = """\
# The experiment of the demo: a virus-like particle in a beam that is not perfect.
[particle]
structure = "virus"
diameter_A = 300

[beam]
photon_energy_eV = 4600

[detector]
pixels = 128
edge_resolution_A = 25
beam_stop_radius_pixels = 3

[simulate]
frames = 2000
photons_per_frame = 20000
fluence_jitter = 0.3
background_photons = 50
empty_fraction = 0.02
multiple_fraction = 0.03
"""


def demo(
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where to put what it makes.")] = Path(
        "demo"
    ),
    seed: Annotated[int, typer.Option(help="Seed of every random draw.", min=0)] = 1,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Simulate an experiment on a virus-like particle and look at it: no settings, under a minute."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        settings = out / "demo.toml"
        settings.write_text(SETTINGS)
    except OSError as error:
        raise FileError(
            out, f"cannot be used as a folder ({error.strerror}).", "Give another --out."
        ) from error
    frames, picture = out / "frames.h5", out / "frames.png"
    made = run_simulation(settings, [f"simulate.seed={seed}"], frames, device)
    report, draw = look_at_patterns(frames, None, None, None, made["frames"])
    if draw is not None:
        save_picture(draw(), picture)
    if as_json:
        print_json(
            {"simulate": made, "inspect": report, "files": [str(p) for p in (settings, frames, picture)]}
        )
        return
    print_report(report)
    output.print()
    made_settings = (
        f"Made   {settings}  (the settings: change them, then: orienteer simulate --settings {settings})"
    )
    output.print(made_settings, markup=False, soft_wrap=True)
    output.print(f"       {frames}  (the patterns)", markup=False, soft_wrap=True)
    output.print(f"       {picture}", markup=False, soft_wrap=True)
    output.print(f"Open   {picture}", style="bold", markup=False, soft_wrap=True)
