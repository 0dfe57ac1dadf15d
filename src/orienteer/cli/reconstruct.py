"""``orienteer reconstruct``: from patterns to the intensity, in a folder from which the run can resume."""

import shlex
from contextlib import closing
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, cast

import typer
from rich.markup import escape

from orienteer.cli.console import messages, output, print_json, print_table
from orienteer.cli.live_display import Step, show_reconstruction
from orienteer.cli.opening import open_patterns
from orienteer.cli.options import (
    AsJson,
    Device,
    DistanceM,
    Geometry,
    HangS,
    NoticeS,
    Overrides,
    SettingsFile,
    WavelengthA,
    in_section,
    with_flags_of,
)
from orienteer.cli.run_report import in_rows, run_report
from orienteer.cli.stopping import telling_when_stopped
from orienteer.reconstruction.settings import EmcSettings
from orienteer.run.signals import NOTICE_S
from orienteer.run.watch import HANG_S

MethodName: TypeAlias = Literal["emc", "mtip", "auto"]


@with_flags_of("emc", EmcSettings)
def reconstruct(
    data: Annotated[Path, typer.Argument(help="Patterns, in any known format.")],
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FOLDER", help="The run; after a stop, the same command resumes it."),
    ] = Path("reconstruction"),
    method: Annotated[
        MethodName,
        typer.Option(
            "--method",
            help="emc, mtip (with phasing in the loop) or auto; the flags below set either.",
        ),
    ] = "emc",
    settings: SettingsFile = None,
    set_: Overrides = [],  # noqa: B006 - typer makes a new list for each call
    geometry: Geometry = None,
    wavelength_A: WavelengthA = None,
    distance_m: DistanceM = None,
    exclude: Annotated[
        Path | None,
        typer.Option(
            "--exclude",
            metavar="JSON",
            help="Leave out the events listed in this file, such as RUN/excluded.json.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of every random draw.", min=0)] = 0,
    device: Device = "auto",
    from_map: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FOLDER", help="Start from the map of a live run (RUN/map), not at random."
        ),
    ] = None,
    restart: Annotated[
        bool,
        typer.Option("--restart", metavar="", help="Start over; the run in the folder is lost."),
    ] = False,
    notice_s: NoticeS = NOTICE_S,
    hang_s: HangS = HANG_S,
    as_json: AsJson = False,
    *,
    flags: list[str],
) -> None:
    """Find the 3D intensity and the orientation of every pattern; stop and resume at any time."""
    from orienteer.run.crew import crew
    from orienteer.run.fault import stop_all
    from orienteer.run.frame_use import frame_use
    from orienteer.run.known_orientations import known_orientations_in_words
    from orienteer.run.run import Run
    from orienteer.run.session import how_to_resume
    from orienteer.run.settings import Settings
    from orienteer.settings.loading import load_settings
    from orienteer.source.left_out import read_excluded, without_events

    team = crew()
    sections = ("emc", "mtip") if method == "auto" else (method,)
    overrides = [*set_, *(in_section(flag, section) for section in sections for flag in flags)]
    chosen = team.by_leader(
        lambda: load_settings(Settings, settings, overrides, (*sections, "run", "cluster"))
    )
    with telling_when_stopped("Stopped.", how_to_resume(out), stop_all(team, out)):
        source = team.together(lambda: open_patterns(data, geometry, wavelength_A, distance_m))
        if exclude is not None:
            whole, excluded = source, team.together(lambda: read_excluded(exclude))
            source = team.together(lambda: without_events(whole, excluded))
            if team.leads and source is whole and len(excluded):
                words = f"None of the events in {exclude} is among these data: nothing is left out."
                messages.print(f"[yellow]note[/] {escape(words)}", soft_wrap=True)
        run = Run.create(out, source, chosen, seed=seed, device=device, method=method, restart=restart)
        run.notice_s, run.hang_s = notice_s, hang_s
        if from_map is not None:
            from orienteer.online.handover import hand_over

            hand_over(run, from_map)
        if team.leads and method == "auto":
            messages.print(escape(run.described["method_because"]), soft_wrap=True)
        if team.leads and (known := known_orientations_in_words(dict(run.settings))):
            messages.print(f"[yellow]beware[/] {escape(known)}", soft_wrap=True)
        with closing(run.iterate()) as steps, show_reconstruction(f"{data} -> {out}") as show:
            for step in steps:
                show(cast(Step, step))
    if not team.leads:
        return
    report = run_report(run)
    if as_json:
        print_json(report)
        return
    print_table(in_rows(report))
    if report["coarse_agreement"]:
        messages.print(f"[yellow]beware[/] {escape(report['coarse_agreement'])}", soft_wrap=True)
    use = frame_use(run.orientations())
    if use is not None and use.leaves_out_many:
        messages.print(
            f"[yellow]note[/] {use.words} If that is wrong, --no-reject-junk keeps all.", soft_wrap=True
        )
    look = f"orienteer plot {shlex.quote(str(out))}"
    output.print(f"Written to {out}.  Look at it with: {look}", markup=False, soft_wrap=True)
