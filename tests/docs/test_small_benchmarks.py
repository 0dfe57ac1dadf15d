"""``make bench`` compares ratios with the kept ones, and says what differs."""

import json
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench"


def run(*words: str) -> str:
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, cwd=BENCH)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_part_is_measured_and_compared_with_what_was_kept() -> None:
    kept = json.loads((BENCH / "small_ratios.json").read_text())["ratios"]
    said = run("small.py", "--parts", "comparing")
    line = next(line for line in said.splitlines() if line.startswith("Fourier shell correlation"))
    assert f"{kept['fsc']:.4g}" in line
    assert any(words in line for words in ("as kept", "WORSE", "better"))
    assert "It took" in said


def test_differences_are_told_by_their_factor() -> None:
    assert run("-m", "doctest", "small.py") == ""


def test_the_kept_ratios_took_less_than_three_minutes_of_one_core() -> None:
    """By the processor: on a machine that others use, the clock tells of them."""
    assert json.loads((BENCH / "small_ratios.json").read_text())["processor_seconds"] <= 180
