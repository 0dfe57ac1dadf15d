"""EMC: time of iterations, blind success, dirty data."""

import ast
from pathlib import Path
from typing import Any

from benchmarks.figure import Figure, Results, at_least, at_most

_ITERATION = (
    "orienteer bench emc --frames 10000 --pixels {pixels} --rotations-n 12 --likelihood {likelihood} "
    "--device cuda --json"
)
_EKEBERG = {
    ("gaussian", 4096): "Ekeberg, Engblom and Liu: 27.2 s on 100 GPUs",
    ("gaussian", 16_384): "Ekeberg, Engblom and Liu: 91.6 s on 100 GPUs",
}
_ITERATION_IN_WORDS = "One EMC iteration: 10 000 frames of 16 384 pixels, 86 520 orientations, one GPU"
_DRAGONFLY = "python bench/dragonfly_settings.py --blind --keep"
_STATES = (("flat", "early"), ("sharp", "late"))
_BLIND = "python bench/blind.py --device cuda --keep"


def _slowest(result: dict[str, Any], likelihood: str, pixels: int) -> float | None:
    """Milliseconds with flat posteriors, the slower case, of the most exact products that were timed."""
    of_kind = [run for run in result["runs"] if (run["likelihood"], run["pixels"]) == (likelihood, pixels)]
    return max((_milliseconds(run) for run in of_kind), default=None)


def _milliseconds(run: dict[str, Any]) -> float:
    """As results were kept at first, or as ``orienteer bench emc --json`` prints them."""
    return float(run["milliseconds_flat"] if "milliseconds_flat" in run else 1000 * run["seconds"])


def _of_products(result: dict[str, Any], likelihood: str, pixels: int) -> str:
    """Share of the time that matrix products need at their measured ceiling: scores and merge."""
    milliseconds = _slowest(result, likelihood, pixels)
    ceiling = result.get("ceiling_teraflops", {}).get("float16")
    if milliseconds is None or ceiling is None:
        return ""
    teraflops = 4 * 10_000 * 86_520 * pixels / (milliseconds * 1e-3) / 1e12
    return f"matrix products alone need {100 * teraflops / ceiling:.0f} % of it"


def _successes(result: dict[str, Any]) -> tuple[int, int]:
    """Runs that succeeded, and all."""
    pairs = [each.split("/") for of_object in result["successes"].values() for each in of_object.values()]
    return sum(int(part) for part, _ in pairs), sum(int(whole) for _, whole in pairs)


def _of_one_thread(result: dict[str, Any]) -> str:
    """The ratio of one thread: two that share a core slow each other down, and cost more processor time."""
    alone = result.get("threads_1")
    return f"{alone['times_less_than_dragonfly']:.3g} times with one; " if alone else ""


def _of_study(n_runs: int) -> str:
    """Four objects, four numbers of photons and five seeds are the whole study."""
    return "" if n_runs >= 80 else f"; {n_runs} of the study's 80 were made so far"


def _where_dragonfly_ran(result: dict[str, Any]) -> str:
    return (
        f"Dragonfly was timed on another machine ({result['dragonfly_machine']}), on frames of its own "
        "simulation"
    )


_BACKGROUND = {
    "2026-11-15": "1 500 frames of 1 000 photons are too few to average the noise of the background away, "
    "also at the true orientations; 10 000 frames of 10 000 photons lose nothing (`dirt_cuda.json`)"
}


def _dirt(case: str) -> Figure:
    words = {
        "fluence": "Loss of resolution: fluence over two decades",
        "junk": "Loss of resolution: 30 % junk shots",
        "background": "Loss of resolution: background as strong as the signal",
        "panel": "Loss of resolution: a dead panel",
    }
    return Figure(
        words[case],
        at_most(15, "%"),
        "dirt_cpu",
        lambda r: r["summary"][case]["loss"],
        "python bench/dirt.py --keep",
        limit=lambda r: (
            f"at the true orientations these photons lose {r['summary'][case]['loss_of_photons']:g} %"
        ),
        remark=lambda r: r["problem"].partition(";")[0],
        because=_BACKGROUND if case == "background" else {},
    )


FIGURES = [
    *(
        Figure(
            f"One iteration, 10 000 frames of {words} pixels × 86 520 rotations, {likelihood}",
            at_most(most, "ms"),
            "emc_cuda",
            lambda r, pixels=pixels, likelihood=likelihood: _slowest(r, likelihood, pixels),
            _ITERATION.format(pixels=pixels, likelihood=likelihood),
            limit=lambda r, pixels=pixels, likelihood=likelihood: _of_products(r, likelihood, pixels),
            plain=_ITERATION_IN_WORDS if (likelihood, pixels) == ("gaussian", 16_384) else "",
            published=_EKEBERG.get((likelihood, pixels), ""),
        )
        for likelihood, pixels, words, most in (
            ("gaussian", 4096, "4 096", 50),
            ("gaussian", 16_384, "16 384", 180),
            ("poisson", 4096, "4 096", 65),
            ("poisson", 16_384, "16 384", 234),
        )
    ),
    Figure(
        "Device memory for a million rotations × 10 000 frames of 16 384 pixels",
        at_most(37.3, "GiB"),
        "emc_cuda",
        lambda r: r["million"]["device_memory_GiB"],
        _ITERATION.format(pixels=16_384, likelihood="gaussian").replace("-n 12", "-n 28"),
        remark=lambda r: f"{r['million']['seconds']:g} s an iteration, {r['million']['rotations']} rotations",
    ),
    *(
        Figure(
            f"Processor time of an iteration, Dragonfly's over ours, setting {setting}, {words}",
            at_least(10, "times"),
            "dragonfly_settings",
            lambda r, setting=setting, shape=shape: r[setting][shape]["threads_2"][
                "times_less_than_dragonfly"
            ],
            _DRAGONFLY,
            remark=lambda r, setting=setting, shape=shape: (
                f"two threads; {_of_one_thread(r[setting][shape])}{_where_dragonfly_ran(r)}"
            ),
        )
        for setting in "AB"
        for shape, words in _STATES
    ),
    Figure(
        "The same, least of these four",
        at_least(10, "times"),
        "dragonfly_settings",
        lambda r: min(
            r[setting][shape]["threads_2"]["times_less_than_dragonfly"]
            for setting in "AB"
            for shape, _ in _STATES
        ),
        _DRAGONFLY,
        remark=lambda r: _where_dragonfly_ran(r),
        plain="Processor time of an EMC iteration on 2 cores, how many times less than Dragonfly's; least "
        "of four cases",
        published="Dragonfly: 1 (timed by us on a 2.8 GHz Xeon, on frames of its own simulation)",
    ),
    Figure(
        "Blind run of setting A from start to end, processor time",
        at_most(94, "s"),
        "dragonfly_settings",
        lambda r: r["blind_A"]["processor_seconds"],
        _DRAGONFLY,
        remark=lambda r: (
            f"Dragonfly: {r['blind_A']['dragonfly']['processor_seconds']:g} s; {_where_dragonfly_ran(r)}"
        ),
    ),
    Figure(
        "Median error of orientations in a blind run of setting A",
        at_most(7.4, "°"),
        "dragonfly_settings",
        lambda r: r["blind_A"]["median_error_deg"],
        _DRAGONFLY,
        remark=lambda r: (
            f"the goal is Dragonfly's own, {r['blind_A']['dragonfly']['median_error_deg']:g}°, on frames of "
            "its own simulation"
        ),
        plain="Median error of orientations found from nothing but 3 000 frames of 600 photons",
        published="Dragonfly: 7.4° (run by us, on frames of its own simulation)",
    ),
    Figure(
        "Blind success on four objects at 100 to 100 000 photons, GPU",
        at_least(95, "%"),
        "blind_emc_cuda",
        lambda r: 100 * _successes(r)[0] / _successes(r)[1],
        _BLIND,
        remark=lambda r: "{} of {} runs{}".format(*_successes(r), _of_study(_successes(r)[1])),
        because={
            "2026-11-18": "all runs that failed are of the virus, made before runs looked for symmetry by "
            "themselves; those of bright frames succeed since (`blind_emc_cpu.json`), and the others have to "
            "be repeated on a GPU"
        },
    ),
    *map(_dirt, ("fluence", "junk", "background", "panel")),
    Figure(
        "Finer grids as the run goes on against the finest from the start, to the same likelihood",
        at_least(3, "times"),
        "adaptive_cpu",
        lambda r: r["times_faster_than_fixed"]["coarse_to_fine"],
        "python bench/adaptive.py --keep",
        remark=lambda r: (
            f"the search that runs use; grids step by step: {r['times_faster_than_fixed']['stepwise']:g}"
        ),
    ),
]


def below(results: Results) -> str:
    """What the settings of Dragonfly's rows are, and the blind runs, object by object."""
    parts = [settings_of_dragonfly()]
    blind = results("blind_emc_cuda")
    if blind is not None:
        parts.append(blind_table(blind))
    return "\n\n".join(parts)


def settings_of_dragonfly() -> str:
    """Settings A and B, early and late, in the words with which their script begins."""
    script = Path(__file__).parents[2] / "bench" / "dragonfly_settings.py"
    about = ast.get_docstring(ast.parse(script.read_text())) or ""
    paragraphs = [" ".join(each.split()) for each in about.split("\n\n")]
    told = [each for each in paragraphs if each.startswith(("A: ", "Early ", "Dragonfly's times"))]
    return f"Settings in the rows on Dragonfly. {' '.join(told)}"


def blind_table(result: dict[str, Any]) -> str:
    """Successes of the runs that were made, object by photons per frame."""
    successes = result["successes"]
    photons = sorted({int(each) for of_object in successes.values() for each in of_object})
    lines = [
        "Blind success, of the runs that were made. Success is a mean correlation with the true intensity of "
        "0.9 and more over the shells that carry signal.",
        "",
        "| object | " + " | ".join(f"{each:,} photons".replace(",", " ") for each in photons) + " |",
        "|---" * (len(photons) + 1) + "|",
    ]
    for name, of_object in successes.items():
        cells = [of_object.get(str(each), "none made").replace("/", " of ") for each in photons]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
