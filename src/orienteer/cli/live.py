"""``orienteer live``: from a detector stream to shots, hits and a map that grows, in one folder."""

import os
import re
import shlex
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from orienteer.cli.console import Stopped, messages, output, print_json, print_table
from orienteer.cli.options import (
    AsJson,
    Device,
    DistanceM,
    Geometry,
    NoticeS,
    Overrides,
    SettingsFile,
    WavelengthA,
    override,
    with_flags_of,
)
from orienteer.errors import OrienteerError, SettingsError, reason_of
from orienteer.run.live_settings import LiveSettings
from orienteer.run.signals import NOTICE_S
from orienteer.settings.loading import parse_override

if TYPE_CHECKING:
    from orienteer.live.folder import LiveFolder

_LOOK_EVERY_S = 0.1
# How long to wait for the first answer of a campaign's database.
_PATIENCE_S = 5.0
_NAMED = re.compile(r"(\w+)=")
_PASSWORD = re.compile(r"(?<=://)([^/@:]*):[^/@]*@")


@with_flags_of("live", LiveSettings)
def live(
    source: Annotated[
        list[str],
        typer.Option(
            "--source",
            metavar="ADDRESS",
            help="tcp://host:5555, a growing file, a folder of runs, ...; for several: NAME=ADDRESS each.",
        ),
    ] = [],  # noqa: B006 - typer makes a new list for each call
    option: Annotated[
        list[str],
        typer.Option("--option", metavar="NAME=VALUE", help="Option of the source; may be repeated."),
    ] = [],  # noqa: B006 - typer makes a new list for each call
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="FOLDER", help="The live run; after a stop, the same command continues it."
        ),
    ] = Path("live"),
    filter_: Annotated[
        str,
        typer.Option(
            "--filter",
            metavar="FILE.py:NAME",
            help="Function of an event's small data that selects the events to read.",
        ),
    ] = "",
    campaign: Annotated[
        str,
        typer.Option("--campaign", metavar="URL", help="Database to record every shot in: a file or a URL."),
    ] = "",
    sample: Annotated[
        str, typer.Option("--sample", metavar="NAME", help="Name of the sample, for the campaign.")
    ] = "",
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds", help="End the run after this many seconds; 0: when the stream ends.", min=0
        ),
    ] = 0,
    demo: Annotated[
        bool, typer.Option("--demo", metavar="", help="Try it all with a replay of a simulated experiment.")
    ] = False,
    settings: SettingsFile = None,
    set_: Overrides = [],  # noqa: B006 - typer makes a new list for each call
    geometry: Geometry = None,
    wavelength_A: WavelengthA = None,
    distance_m: DistanceM = None,
    seed: Annotated[int, typer.Option(help="Seed of every random draw.", min=0)] = 0,
    device: Device = "auto",
    notice_s: NoticeS = NOTICE_S,
    as_json: AsJson = False,
    *,
    flags: list[str],
) -> None:
    """Receive a stream, find hits, and watch a 3D map grow; killed processes restart and nothing is lost.

    Every event received is filtered, dropped (only if you ask for it) or processed: counters add up.
    If it falls behind, events wait in the stream: its memory does not grow.
    """
    from orienteer.run.settings import Settings
    from orienteer.settings.loading import load_settings

    given = {"geometry": geometry, "wavelength_A": wavelength_A, "distance_m": distance_m}
    overrides = [
        *set_,
        *(override("run", key, value) for key, value in given.items() if key == "geometry" and value),
    ]
    overrides += [f"run.{key}={value}" for key, value in given.items() if key != "geometry" and value]
    if sample and not campaign:
        raise SettingsError("--sample needs a campaign to record it in.", "Give --campaign, too.")
    if demo:
        from orienteer.cli.live_demo import run_demo

        _refuse_with_demo(
            {"source": source, "option": option, "filter": filter_, "settings": settings, **given}
        )
        into = (campaign, sample)
        run_demo(out, [*set_, *flags], seed, device, seconds, notice_s, as_json, into)
        return
    if not source:
        raise SettingsError(
            "no source is given.", "Give --source tcp://host:5555, a file or a folder; or try --demo."
        )
    chosen = load_settings(Settings, settings, [*overrides, *flags])
    facts = {
        "sources": _sources(source),
        "options": _options(option),
        "filter": _absolute(filter_),
        "seed": seed,
        "device": device,
        **({"sample": sample} if sample else {}),
    }
    folder = receive(out, facts, chosen, campaign, seconds, notice_s, as_json)
    tell(folder, as_json)


def receive(
    out: Path,
    facts: dict[str, Any],
    settings: Any,
    campaign: str = "",
    seconds: float = 0,
    notice_s: float = NOTICE_S,
    as_json: bool = False,
) -> "LiveFolder":
    """Supervise a live run until its stream ends, a signal stops it, or its worker cannot work."""
    from orienteer.cli.live_counters import show_live
    from orienteer.live.folder import LiveFolder
    from orienteer.live.given import check_given, open_detector
    from orienteer.live.roles import CAMPAIGN_VARIABLE, UNTIL_VARIABLE
    from orienteer.live.supervising import Supervisor
    from orienteer.run.lock import RunLock
    from orienteer.run.signals import StopRequests

    check_given(facts, settings)
    _check_campaign(campaign, str(facts.get("sample") or ""))
    folder = LiveFolder(out)
    folder.make()
    # Frames come one by one: more threads would only spend time waiting for each other.
    roles = {"worker": {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}}
    roles["worker"] |= {UNTIL_VARIABLE: str(time.monotonic() + seconds) if seconds else ""}
    roles |= {"map": {}} if settings.live.map else {}
    roles |= {"database": {CAMPAIGN_VARIABLE: campaign}} if campaign else {}
    with StopRequests(notice_s) as stop, RunLock(out, doing="supervising this live run"):
        shown = {"campaign": without_password(campaign)} if campaign else {}
        is_new = folder.begin({**facts, **shown}, settings)
        folder.log.append("began" if is_new else "went on", pid=os.getpid())
        # Before the children start: a map that was begun with another detector then starts over.
        if not is_new and (detector := open_detector(settings)) is not None:
            folder.put_detector(detector)
        supervisor = Supervisor(folder, roles)
        try:
            try:
                with show_live(f"{', '.join(facts['sources'].values())} -> {out}", is_quiet=as_json) as show:
                    while not stop.is_requested and not supervisor.is_over:
                        supervisor.look()
                        show(folder, supervisor)
                        time.sleep(_LOOK_EVERY_S)
                    show(folder, supervisor)
            finally:
                supervisor.stop(notice_s * 0.8)
        except BaseException as error:
            with suppress(OrienteerError):  # the disk may be what has failed
                folder.log.append("stopped" if stop.is_requested else "failed", reason=reason_of(error))
            raise
        given_up = {child.role: child.words for child in supervisor.children if child.state == "given up"}
        folder.log.append("stopped" if stop.is_requested else "finished", given_up=given_up)
        for role, words in given_up.items():
            if role == "worker":
                raise OrienteerError(
                    f"nothing can be received: {words}", "Fix that, then the same command continues."
                )
            messages.print(f"[yellow]note[/] {role}: {escape(words)}", soft_wrap=True)
        if stop.is_requested:
            stopped = stop.exception(
                "Stopped; everything that was received is kept.", "The same command continues."
            )
            messages.print(f"{stopped.message} {stopped.hint}", soft_wrap=True)
            if as_json:
                tell(folder, as_json)
            raise Stopped(stopped.exit_status)
    return folder


def tell(folder: "LiveFolder", as_json: bool, **more: Any) -> None:
    """Print what happened to the events, for people or as JSON."""
    counters = folder.read_counters()
    report = {"run": str(folder.path), **counters, **more}
    for name in ("received", "filtered", "dropped", "processed"):
        report.setdefault(name, 0)
    if as_json:
        print_json(report)
        return
    print_table([(name.replace("_", " "), _in_words(value)) for name, value in report.items()])
    if report["processed"] and not report.get("hits"):
        messages.print(
            "[yellow]note[/] No shot stands out from the others. If nearly all of them are hits, begin "
            "another run with --set hits.find=false, which counts every shot as a hit.",
            soft_wrap=True,
        )
    quoted = shlex.quote(str(folder.path))
    output.print(f"Its hits open like a file:  orienteer inspect {quoted}", markup=False, soft_wrap=True)
    output.print(f"See it on a page:  orienteer serve {quoted}", markup=False, soft_wrap=True)


def without_password(address: str) -> str:
    """The address of a database with its password hidden."""
    return _PASSWORD.sub(r"\1:***@", address)


def _in_words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _refuse_with_demo(given: dict[str, Any]) -> None:
    """Refuse options that the demo does not use."""
    unused = [name for name, value in given.items() if value]
    if unused:
        raise SettingsError(
            f"--demo has a stream and settings of its own and cannot use --{unused[0].replace('_', '-')}.",
            "Leave it out; change single settings with --set.",
        )


def _sources(given: list[str]) -> dict[str, str]:
    """Addresses by name; paths are made absolute, so that they work from any folder."""
    sources: dict[str, str] = {}
    for number, text in enumerate(given):
        named = None if Path(text).exists() else _NAMED.match(text)
        name, address = (named[1], text[named.end() :]) if named else (f"source_{number}", text)
        if name in sources:
            raise SettingsError(f"two sources are called '{name}'.", "Give each a name of its own.")
        sources[name] = str(Path(address).resolve()) if Path(address).exists() else address
    return sources


def _options(given: list[str]) -> dict[str, Any]:
    """Options of a source by name; values are read as TOML, or as text if they are not valid TOML."""
    options = {}
    for text in given:
        name, equals, _ = text.partition("=")
        if not equals or not name.isidentifier():
            raise SettingsError(
                f"--option {text}: expected NAME=VALUE.", "For example: --option most_events=64"
            )
        options[name] = parse_override(f"source.{text}")[1]
    return options


def _absolute(filter_: str) -> str:
    """The filter with the path of its Python file made absolute, so that it works from any folder."""
    path, colon, name = filter_.rpartition(":")
    return f"{Path(path).resolve()}:{name}" if colon and path.endswith(".py") else filter_


def _check_campaign(campaign: str, sample: str) -> None:
    """Create or check the campaign before anything starts; a server that does not answer is no error."""
    if not campaign:
        return
    from orienteer.campaign.address import CampaignAway
    from orienteer.campaign.campaign import Campaign
    from orienteer.campaign.names import checked_name

    if sample:
        checked_name(sample, "sample")
    try:
        Campaign.open(campaign, create=True, patience_s=_PATIENCE_S).close()
    except CampaignAway as error:
        waits = "Shots are recorded there as soon as it answers."
        messages.print(f"[yellow]note[/] {escape(error.message)} {waits}", soft_wrap=True)
