"""``orienteer validate``: how far to trust the result of a run, judged from its data alone."""

import shlex
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.markup import escape

from orienteer.cli.console import messages, output, print_json, print_table
from orienteer.cli.live_display import Step, angle_in_words, show_reconstruction
from orienteer.cli.options import AsJson, Device, Overrides, SettingsFile, with_flags_of
from orienteer.cli.progress import show_steps
from orienteer.cli.stopping import telling_when_stopped
from orienteer.compute.arrays import DeviceName
from orienteer.compute.words import counted, time_in_words
from orienteer.errors import FileError
from orienteer.run.validation_settings import ValidationSettings

if TYPE_CHECKING:
    from orienteer.phase.settings import PhaseSettings
    from orienteer.run.run import Run
    from orienteer.validate.halves import Halves
    from orienteer.validate.result import Validation
    from orienteer.validate.states import StateAgreement


@with_flags_of("validation", ValidationSettings)
def validate(
    run: Annotated[Path, typer.Argument(help="The folder of a finished reconstruction.", show_default=False)],
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="FILE", help="The patterns of the run, if they have moved."),
    ] = None,
    settings: SettingsFile = None,
    set_: Overrides = [],  # noqa: B006 - typer makes a new list for each call
    device: Device = "auto",
    restart: Annotated[
        bool, typer.Option("--restart", metavar="", help="Start over; the work on the halves is lost.")
    ] = False,
    as_json: AsJson = False,
    *,
    flags: list[str],
) -> None:
    """Reconstruct two independent halves and say how far they agree; stop and resume at any time."""
    from orienteer.run.lock import VALIDATION, RunLock
    from orienteer.run.run import Run
    from orienteer.run.settings import Settings
    from orienteer.settings.loading import load_settings
    from orienteer.validate.halves import begin_halves
    from orienteer.validate.side_by_side import SideBySide, can_go_side_by_side
    from orienteer.validate.validation import validate as put_to_the_test

    begun = time.monotonic()
    chosen = load_settings(Settings, settings, [*set_, *flags], ("validation", "phase"))
    with telling_when_stopped("Stopped; what is done is kept.", "The same command continues."):
        opened = Run.open(run, data)
        _check_density(run)
        with RunLock(run, VALIDATION, "validating this run"):
            halves = begin_halves(opened, chosen.validation, device, restart)
            _announce(opened, halves, chosen.validation)
            with SideBySide() as at_work:
                if not halves.finished and can_go_side_by_side(opened, device):
                    at_work.start(opened, halves, chosen.validation, chosen.phase, device)
                else:
                    _reconstruct(halves)
                _phase_whole(opened, chosen.phase, device)
                with show_steps("Phasing and comparing the halves", in_logs=True):
                    found = put_to_the_test(
                        opened, chosen.validation, chosen.phase, device=device, halves=halves,
                        at_work=at_work,
                    )  # fmt: skip
    _tell(found, opened, time.monotonic() - begun, as_json)


def _check_density(run: Path) -> None:
    """Refuse an unreadable density of the run before the long work on the halves begins."""
    from orienteer.phase.files import DESCRIPTION
    from orienteer.phase.result import Phasing

    if not (run / DESCRIPTION).exists():
        return
    try:
        Phasing.open(run)
    except FileError as error:
        error.hint = f"Phase the run again: orienteer phase {shlex.quote(str(run))} --restart"
        raise


def _announce(run: "Run", halves: "Halves", settings: ValidationSettings) -> None:
    """Print what will be done, and how long it may take."""
    sizes = " and ".join(f"{len(part):,}" for part in halves.parts[:2])
    took = sum(step.get("seconds") or 0.0 for step in run.steps)
    left = sum(0.5 for one in halves.runs if not one.finished)
    when = f"about {time_in_words(left * took)}" if left else "done already"
    drawn = (
        f", with a bootstrap of {counted(settings.replicates, 'draw')} of the frames"
        if settings.replicates
        else ""
    )
    messages.print(
        f"Two independent runs of {sizes} frames ({when}; {len(halves.parts.sentinels):,} frames are "
        f"in neither) are made, phased and compared{drawn}.",
        markup=False,
        soft_wrap=True,
    )


def _reconstruct(halves: "Halves") -> None:
    for number, run in enumerate(halves.runs, start=1):
        if run.finished:
            continue
        half = f"half {number}"
        title = f"{half}: {counted(len(halves.parts[number - 1]), 'frame')} -> {run.path}"
        with closing(run.iterate()) as steps, show_reconstruction(title, half) as show:
            for step in steps:
                show(cast(Step, step))


def _phase_whole(run: "Run", settings: "PhaseSettings", device: DeviceName) -> None:
    """Phase the intensity of all frames, about which the claim is made; keep a density that exists."""
    from orienteer.cli.phase_folder import to_oneself
    from orienteer.phase.files import DESCRIPTION
    from orienteer.validate.half_phasing import phase_run

    if (run.path / DESCRIPTION).exists():
        return
    with to_oneself(run.path), show_steps("Phasing the run of all frames", in_logs=True):
        phase_run(run, settings, device)


def _tell(found: "Validation", run: "Run", seconds: float, as_json: bool) -> None:
    from orienteer.run.files import VALIDATION

    folder = run.path / VALIDATION
    if as_json:
        print_json({"path": str(folder), "seconds": seconds, **found.describe()})
        return
    output.print(found.statement, style="bold", markup=False, soft_wrap=True)
    print_table(in_rows(found, seconds))
    for remark in found.remarks:
        messages.print(f"[yellow]note[/] {escape(remark)}", soft_wrap=True)
    output.print(f"Written to {folder}", markup=False, soft_wrap=True)


def in_rows(found: "Validation", seconds: float) -> list[tuple[str, str]]:
    """The results of a validation as rows for people; unknown ones are left out."""
    rows = []
    if found.maps is not None:
        by_name = {name: one.resolution_A for name, one in found.maps.resolutions.items()}
        told = ", ".join(
            f"{'-' if value is None else f'{value:.3g} A'} ({name})" for name, value in by_name.items()
        )
        # Even densities of noise agree if they are phased from the same radial mean.
        is_round = found.resolution_A is None and found.densities_agree_to_A is not None
        is_round &= not found.too_few_speckles
        if found.exceeds_claim:
            told += f"; beyond {found.resolution_A:.3g} A in their radial mean only"
        rows.append(("densities agree to", f"nothing beyond their radial mean: {told}" if is_round else told))
    # The alignment alone makes any two intensities agree somewhat; that does not count.
    is_alike = found.too_few_speckles or found.speckles_agree_to_A is not None
    alike_A = found.intensity.resolution_A if is_alike else None
    doubt = ", possibly by chance" if found.too_few_speckles else ""
    rows += [
        ("intensities agree to", _reach(alike_A, f"0.5, about their radial mean{doubt}")),
        ("the run agrees with them to", _reach(found.whole_agrees_to_A, "speckles")),
    ]
    if found.density is not None:
        reach = _reach(found.density_agrees_to_A, "0.5")
        rows.append(("the density of the run agrees with theirs to", reach))
    if found.states:  # replace the rows above, which are about the first state only
        rows = [(f"state {one.state}", _state(one)) for one in found.states]
    if found.sentinels is not None:
        poses = found.sentinels
        words = f"agree to {angle_in_words(poses.median_deg)} ({counted(poses.frames, 'frame')}"
        rows.append(("poses of unseen frames", f"{words}; by chance {poses.chance_deg:.0f} deg)"))
    if found.coverage is not None:
        share = f"{found.coverage.empty_share:.1%} of directions without data"
        rows.append(("coverage", f"{share}, least {found.coverage.worst_density:.2g} of the mean"))
    return [*rows, ("time", time_in_words(seconds))]


def _state(one: "StateAgreement") -> str:
    if None in one.models:
        return f"{100 * one.share:.3g} % of the frames, {one.words.partition(' ')[2].partition(' ')[2]}"
    told = [
        f"{100 * one.share:.3g} % of the frames", f"agrees to {_reach(one.resolution_A, '0.143')}",
        _reach(one.intensity.agrees_to_A, "speckles of the halves"),
    ]  # fmt: skip
    if one.density is not None:
        told.append(f"density of the run to {_reach(one.density.agrees_to_A, '0.5')}")
    return ", ".join(told)


def _reach(resolution_A: float | None, how: str) -> str:
    return f"nothing ({how})" if resolution_A is None else f"{resolution_A:.3g} A ({how})"
