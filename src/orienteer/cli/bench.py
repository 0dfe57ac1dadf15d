"""``orienteer bench``: how long an iteration takes on this machine, in total and by part."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import typer

from orienteer.cli.console import print_json, print_table
from orienteer.cli.options import AsJson, Device
from orienteer.cli.progress import show_steps
from orienteer.compute.words import time_in_words


def bench(
    what: Annotated[Literal["emc"], typer.Argument(help="What to time: whole iterations of EMC.")],
    frames: Annotated[int, typer.Option(help="Frames.", min=1)] = 10_000,
    pixels: Annotated[int, typer.Option(help="Pixels of a frame that are used.", min=1)] = 4096,
    rotations_n: Annotated[
        int,
        typer.Option("--rotations-n", help="Divisions of the 600-cell: 10 (5 n³ + n) orientations.", min=1),
    ] = 12,
    likelihood: Annotated[
        Literal["gaussian", "poisson"], typer.Option(help="How frames and slices are compared.")
    ] = "poisson",
    repeats: Annotated[
        int, typer.Option(help="Timed iterations, after one untimed; the median is reported.", min=1)
    ] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the frames and the intensity.", min=0)] = 0,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Time whole iterations on made-up frames: expand, score, responsibilities, merge, fluence."""
    from orienteer.reconstruction.benchmark import time_iterations

    with show_steps("Timing"):
        result = time_iterations(
            frames=frames,
            pixels=pixels,
            rotations_n=rotations_n,
            likelihood=likelihood,
            device=device,
            repeats=repeats,
            seed=seed,
        )
    if as_json:
        print_json(result)
        return
    print_table(facts_in_words(result))
    print_table(parts_in_words(result), header=("part", "time", "share"))


def facts_in_words(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Everything but the parts, one row each."""
    rows = []
    for name, value in result.items():
        if name == "breakdown" or isinstance(value, (list, Mapping)):
            continue
        shown = f"{value:,}" if isinstance(value, int) else str(value)
        rows.append((name.replace("_", " "), f"{value:.4g}" if isinstance(value, float) else shown))
    return rows


def parts_in_words(result: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The parts of an iteration with their time and their share of the whole.

    >>> parts_in_words({"seconds": 2.0, "breakdown": {"score": 1.5}})
    [('score', '1.5 s', '75 %')]
    """
    whole = result["seconds"]
    return [
        (part.replace("_", " "), time_in_words(seconds), f"{seconds / whole:.0%}".replace("%", " %"))
        for part, seconds in result["breakdown"].items()
    ]
