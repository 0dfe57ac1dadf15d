"""``orienteer weather``: what each rank of a run did, when and how fast; slow nodes, stalls, bad frames."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orienteer.cli.console import output, print_json, print_table
from orienteer.cli.options import AsJson
from orienteer.plot.saving import save_picture

if TYPE_CHECKING:
    from orienteer.scaling.weather import Weather


def weather(
    run: Annotated[Path, typer.Argument(help="The folder of a reconstruction.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="PNG|SVG", help="Where to draw; by default RUN_weather.png in this folder."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw how every rank spent its time, and say what is slow: ranks, disks, single frames."""
    from orienteer.plot.weather import plot_weather
    from orienteer.scaling.findings import find, in_words
    from orienteer.scaling.weather import Weather

    seen = Weather.read(run)
    findings = find(seen)
    texts = in_words(findings)
    figure = plot_weather(seen, texts, str(run))
    picture = save_picture(figure, out or Path(f"{run.resolve().name}_weather.png"), ("png", "svg"))
    if as_json:
        print_json({**_report(seen), "findings": findings, "picture": str(picture)})
        return
    print_table(_rows(seen))
    for text in texts:
        output.print(text, markup=False, soft_wrap=True)
    output.print(f"Open   {picture}", style="bold", markup=False, soft_wrap=True)


def _report(seen: "Weather") -> dict[str, Any]:
    """All numbers by name."""
    return {
        "ranks": len(seen.ranks),
        "hosts": len({rank.host for rank in seen.ranks}),
        "seconds": seen.seconds,
        "iterations": len(seen.iterations),
        "share_of_time": {name: float(share.mean()) for name, share in seen.shares.items() if share.any()},
        "usual_frames_per_second": {str(number): rate for number, rate in seen.usual_rate.items()},
        "by_rank": [
            {
                "rank": rank.rank,
                "host": rank.host,
                "relative_rate": float(seen.relative_rate[row]),
                "share_of_time": {
                    name: float(share[row]) for name, share in seen.shares.items() if share[row]
                },
            }
            for row, rank in enumerate(seen.ranks)
        ],
    }


def _rows(seen: "Weather") -> list[tuple[str, str]]:
    hosts = len({rank.host for rank in seen.ranks})
    shares = sorted(((float(share.mean()), name) for name, share in seen.shares.items()), reverse=True)
    told = ", ".join(f"{name} {share:.0%}" for share, name in shares if share >= 0.005)
    return [
        ("ranks", f"{len(seen.ranks)} on {hosts} machine{'s' if hosts > 1 else ''}"),
        ("iterations", f"{len(seen.iterations)} in {seen.seconds:.3g} s"),
        ("time goes to", told),
    ]
