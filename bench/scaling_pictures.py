"""The pictures of docs/explanation/scaling.md, from the performance model and the kept measurements.

    python bench/scaling_pictures.py

Draws docs/explanation/pictures/scaling_*.png.  What is measured comes from bench/results; the weather plot
shows made-up logs.
"""

import json
import tempfile
from pathlib import Path

from machine import RESULTS
from made_up_logs import write_logs
from orienteer.plot.scaling import plot_largest, plot_strong, plot_weak
from orienteer.plot.weather import plot_weather
from orienteer.scaling.curves import largest, strong, weak
from orienteer.scaling.findings import find, in_words
from orienteer.scaling.machines import MACHINES
from orienteer.scaling.prediction import Prediction
from orienteer.scaling.problem import Problem
from orienteer.scaling.weather import Weather

# Pixels, and voxels along an edge, of the cases of Ekeberg, Engblom and Liu, as the benchmark has them.
SEED_SIZES = ((4_096, 95), (16_384, 187))
MACHINE = MACHINES["h200"]
LARGE = Problem(1_000_000, 16_384, 1_097_880, 187, 0.2)
PICTURES = Path(__file__).parents[1] / "docs" / "explanation" / "pictures"


def of_seed() -> list[Problem]:
    """The cases of Ekeberg, Engblom and Liu."""
    return [Problem(10_000, pixels, 86_520, edge, 0.2, n_halves=1) for pixels, edge in SEED_SIZES]


def largest_curves() -> dict[str, list[Prediction]]:
    """As many frames as nodes hold, from one to 512 of them."""
    ranks = [8 * 2**power for power in range(10)]
    return {
        "4 096 pixels, 86 520 orientations": largest(of_seed()[0], MACHINE, ranks),
        "16 384 pixels, 1 097 880 orientations": largest(LARGE, MACHINE, ranks),
    }


def main() -> None:
    """Draw all of them."""
    small, fine = of_seed()
    names = (
        "10 000 frames of 4 096 pixels, 86 520 orientations",
        "10 000 of 16 384 pixels, 86 520 orientations",
    )
    emc = {
        names[0]: strong(small, MACHINE),
        names[1]: strong(fine, MACHINE),
        "1 000 000 of 16 384 pixels, 1 097 880 orientations": strong(LARGE, MACHINE),
    }
    mtip = {
        f"131 072 images of 16 384 pixels, {words} orientations": strong(
            Problem(131_072, 16_384, poses, 151, 0.2, method="mtip"), MACHINE
        )
        for poses, words in ((86_520, "86 520"), (1_048_576, "1 048 576"))
    }
    kept = json.loads((RESULTS / "emc_cuda.json").read_text())["runs"]
    ms = {run["pixels"]: run["milliseconds_flat"] for run in kept if run["products"] == "half"}
    measured = {names[0]: ms[4096] / 1e3, names[1]: ms[16384] / 1e3}
    figures = {"strong": plot_strong(emc, mtip, measured)}
    weakly = {
        "EMC, 10 000 frames of 4 096 pixels each, 86 520 orientations": weak(
            Problem(10_000, 4_096, 86_520, 95, 0.2), MACHINE
        ),
        "EMC, 10 000 of 16 384 pixels each, 1 097 880 orientations": weak(LARGE.with_frames(10_000), MACHINE),
        "M-TIP, 2 500 of 16 384 pixels each, 1 048 576 orientations": weak(
            Problem(2_500, 16_384, 1_048_576, 151, 0.2, method="mtip"), MACHINE
        ),
    }
    here = json.loads((RESULTS / "scaling_weak_cpu.json").read_text())
    figures["weak"] = plot_weak(weakly, here["runs"], here["machine"]["cores"])
    figures["largest"] = plot_largest(largest_curves())
    with tempfile.TemporaryDirectory() as folder:
        write_logs(
            Path(folder), 16, slow={5: 3.0}, stall=(3, 6.0, (0, 1, 2, 3, 8, 9)), bad=(11, 4, 4.0),
            pause=(13, 5, 5.0),
        )  # fmt: skip
        weather = Weather.read(Path(folder))
        figures["weather"] = plot_weather(weather, in_words(find(weather)), "A made-up run with troubles")
    PICTURES.mkdir(exist_ok=True)
    for name, figure in figures.items():
        path = PICTURES / f"scaling_{name}.png"
        figure.savefig(path)
        print(path.relative_to(PICTURES.parents[2]))


if __name__ == "__main__":
    main()
