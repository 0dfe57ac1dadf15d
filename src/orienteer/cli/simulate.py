"""``orienteer simulate``: a whole experiment, from a structure to a file of patterns."""

import shlex
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.markup import escape

import orienteer
from orienteer.cli.console import messages, output, print_json, print_losses
from orienteer.cli.options import (
    AsJson,
    Device,
    Geometry,
    Overrides,
    Overwrite,
    SettingsFile,
    override,
    refuse_existing,
    with_flags_of,
)
from orienteer.cli.progress import show_steps, track
from orienteer.cli.stopping import telling_what_is_written
from orienteer.compute.arrays import DeviceName
from orienteer.compute.words import counted
from orienteer.detector.detector import Detector
from orienteer.errors import FileError
from orienteer.simulation.settings import SimulateSettings


@with_flags_of("simulate", SimulateSettings)
def simulate(
    particle: Annotated[
        str | None,
        typer.Argument(
            help="PDB or mmCIF file, or a built-in body; by default \\[particle] structure.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Where to write; the ending chooses the format.")
    ] = Path("frames.h5"),
    overwrite: Overwrite = False,
    settings: SettingsFile = None,
    set_: Overrides = [],  # noqa: B006 - typer makes a new list for each call
    geometry: Geometry = None,
    device: Device = "auto",
    as_json: AsJson = False,
    *,
    flags: list[str],
) -> None:
    """Simulate a single-particle experiment and write its patterns together with the true orientations."""
    given = [override("particle", "structure", particle)] if particle else []
    given += [override("detector", "geometry", geometry)] if geometry else []
    with telling_what_is_written(out):
        report = run_simulation(settings, [*set_, *given, *flags], out, device, overwrite)
    if as_json:
        print_json(report)
        return
    rate = f"{report['frames_per_second']:,.0f} frames/s after {report['setup_seconds']:.1f} s of set-up"
    made = f"{counted(report['frames'], 'frame')} of {report['photons_per_frame']:,.4g} photons"
    output.print(f"{made} on {report['device']}: {rate}")
    for remark in report["remarks"]:
        messages.print(f"[dim]{escape(remark)}[/]")
    print_losses(report["lost"])
    look = f"orienteer inspect {shlex.quote(str(out))}"
    output.print(f"Written to {out}.  Look at it with: {look}", markup=False, soft_wrap=True)


def sampling_remarks(radius_A: float, detector: Detector, wavelength_A: float) -> list[str]:
    """A warning if the pixels are too coarse for the speckles of the particle (two pixels per speckle)."""
    used = detector.solid_angle_sr[detector.solid_angle_sr > 0]
    largest_A = wavelength_A / (2 * float(np.median(used)) ** 0.5)
    if 2 * radius_A <= largest_A:
        return []
    return [
        f"The particle is up to {2 * radius_A:,.0f} A across, but these pixels resolve the speckles of "
        f"particles up to {largest_A:,.0f} A: move the detector away, or use smaller pixels."
    ]


def run_simulation(
    path: Path | None, overrides: list[str], out: Path, device: DeviceName, overwrite: bool = False
) -> dict[str, Any]:
    """Simulate with a settings file and overrides, write ``out`` batch by batch, and return a report."""
    from orienteer.detector.settings import beam_from_settings, detector_from_settings
    from orienteer.particle.settings import particle_from_settings
    from orienteer.run.settings import Settings
    from orienteer.settings.loading import load_settings
    from orienteer.simulation.experiment import Experiment
    from orienteer.simulation.room import check_room
    from orienteer.source.opening import writer_for

    start = time.perf_counter()
    used = ("particle", "beam", "detector", "simulate")
    settings = load_settings(Settings, path, overrides, used)
    beam = beam_from_settings(settings.beam)
    try:
        detector = detector_from_settings(settings.detector, beam.wavelength_A)
    except FileError as error:
        if "--distance-m" not in error.hint:
            raise
        # Other commands have that flag; here it is a setting.
        hint = "Give the distance: --set detector.distance_m=0.2"
        raise FileError(error.path, error.reason, hint) from error
    if not out.parent.is_dir():  # fail now, not after the set-up
        raise FileError(out, "cannot be written: its folder does not exist.", f"Try: mkdir -p {out.parent}")
    writer_for(out, detector=detector)
    refuse_existing(out, overwrite)
    with show_steps("Preparing the particle"):
        ensemble = particle_from_settings(settings.particle)
        experiment = Experiment(ensemble, beam, detector, settings.simulate, device=device)
        metadata = {
            "creator": f"orienteer {orienteer.__version__}",
            "seed": settings.simulate.seed,
            "settings": settings.model_dump_json(),
        }
        writer = writer_for(out, like=experiment, metadata=metadata)
        n_photons = experiment.photons_per_hit
        room = check_room(experiment, out)
    if room:
        messages.print(f"[dim]{escape(room)}[/]", soft_wrap=True)
    prepared = time.perf_counter()
    with writer:
        for batch in track(experiment.batches(), "Simulating", settings.simulate.frames, size=len):
            writer.append(batch)
    end = time.perf_counter()
    return {
        "file": str(out),
        "format": writer.format,
        "frames": writer.n_written,
        "photons_per_frame": n_photons,
        "seed": settings.simulate.seed,
        "device": experiment.device,
        "setup_seconds": prepared - start,
        "seconds": end - start,
        "frames_per_second": writer.n_written / (end - prepared),
        "remarks": [
            *ensemble.remarks,
            *sampling_remarks(ensemble.radius_A, detector, beam.wavelength_A),
        ],
        "lost": writer.losses(experiment),
    }
