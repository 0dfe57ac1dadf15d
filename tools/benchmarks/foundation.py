"""Simulation, rotations, files: the ground that everything stands on."""

from benchmarks.figure import Figure, at_least, at_most


def _accuracy(result: dict, edge_A: float) -> float:
    return max(case["relative_l2_error_max"] for case in result["cases"] if case["edge_A"] == edge_A)


FIGURES = [
    *(
        Figure(
            f"Fast against exact intensities, 58 624 atoms, {edge_A} Å at the edge, error ({device})",
            at_most(1e-4),
            f"simulate_accuracy_{device}",
            lambda r, edge_A=edge_A: _accuracy(r, edge_A),
            f"python bench/simulate_accuracy.py --device {device} --keep",
        )
        for device in ("cpu", "cuda")
        for edge_A in (12, 5)
    ),
    Figure(
        "Simulated frames of 128² pixels to an error of 1e-4, CPU",
        at_least(150, "frames/s"),
        "simulate_rate_cpu",
        lambda r: r["frames_per_second"],
        "python bench/simulate_rate.py --keep",
        remark=lambda r: f"{r['frames_per_second_to_disk']:.0f} frames/s to disk",
        plain="Simulated frames of 128 × 128 pixels with errors below 1e-4, 2 cores",
        published="Skopi: 58.6 s per frame, by the exact sum (timed by us)",
    ),
    Figure(
        "Time before the first frame, CPU",
        at_most(15, "s"),
        "simulate_rate_cpu",
        lambda r: r["set_up_seconds"],
        "python bench/simulate_rate.py --keep",
    ),
    Figure(
        "Simulated frames of 128² pixels to an error of 1e-4, GPU",
        at_least(100_000, "frames/s"),
        "simulate_rate_cuda",
        lambda r: r["frames_per_second"],
        "python bench/simulate_rate.py --device cuda --keep",
        remark=lambda r: f"{r['frames_per_second_to_disk']:.0f} frames/s to disk",
        plain="Simulated frames of 128 × 128 pixels with errors below 1e-4, one GPU",
        published="Skopi: 58.6 s per frame, by the exact sum (timed by us)",
    ),
    Figure(
        "Grid of 400 200 rotations with weights, one core",
        at_most(2, "s"),
        "rotations",
        lambda r: r["seconds"]["first"],
        "python bench/rotations.py --keep",
    ),
    *(
        Figure(
            what,
            at_most(0, "failures"),
            "promises",
            lambda r, part=part: r[part]["failed"],
            "python bench/promises.py --keep",
            remark=lambda r, part=part: f"{r[part]['passed']} tests",
        )
        for what, part in (
            ("Classic mistakes of the field, each against an independent calculation", "traps"),
            ("Every format written and read back exactly", "round_trips"),
            ("Damaged files refused in words or read right", "damaged_files"),
            ("Files of writers that were killed", "killed_writers"),
        )
    ),
    Figure(
        "`make demo` in a fresh clone, installation included",
        at_most(360, "s"),
        "first_minutes",
        # An older demo ended with a picture of simulated frames.
        lambda r: r["seconds"] if "report" in r["problem"] else None,
        "python bench/first_minutes.py --keep",
        remark=lambda r: f"{r['seconds_of_demo']:.0f} s of it the demo itself",
    ),
    Figure(
        "`make test`: all tests on two cores",
        at_most(600, "s"),
        "suite",
        lambda r: r["seconds"],
        "python bench/suite.py --keep",
        remark=lambda r: (
            f"{r['processor_seconds']:.0f} s of processors, {r['failed']} failed; "
            f"{r['kernels_compiled_meanwhile']} kernels were compiled meanwhile"
        ),
        because={"2026-11-20": "150 tests came within a day; they explain a part of the rise from 494 s"},
    ),
    Figure(
        "Important lines broken one at a time: not noticed by any test",
        at_most(0, "of 20"),
        "mutations",
        lambda r: r["broken"] - r["caught"],
        "python tools/mutations.py --keep",
        remark=lambda r: f"{r['of_these_by_a_crash']} noticed because the tests crashed",
    ),
    Figure(
        "Lines of the largest module",
        at_most(600, "lines"),
        "modules",
        lambda r: max(r["largest"].values()),
        "python bench/modules.py --keep",
        remark=lambda r: f"of {r['modules']} modules; the median has {r['median_lines']:.0f}",
    ),
]
