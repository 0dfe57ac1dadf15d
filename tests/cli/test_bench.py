"""``orienteer bench`` hands a problem over and prints the parts of its time."""

from typing import Any

import pytest


def test_bench_hands_the_problem_over_and_prints_the_parts(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def time_iterations(**problem: Any) -> dict[str, Any]:
        asked.update(problem)
        return problem | {"seconds": 2.0, "each": [2.0, 2.1], "breakdown": {"score": 1.5, "merge": 0.5}}

    monkeypatch.setattr("orienteer.reconstruction.benchmark.time_iterations", time_iterations)
    line = ["bench", "emc", "--frames", 20, "--pixels", 64, "--rotations-n", 2, "--device", "cpu"]
    result = run(*line, "--likelihood", "gaussian")
    assert result.status == 0, result.errors
    assert asked == {
        "frames": 20, "pixels": 64, "rotations_n": 2, "likelihood": "gaussian", "device": "cpu",
        "repeats": 10, "seed": 0,
    }  # fmt: skip
    assert "75 %" in result.output
    assert run(*line, "--json").json["breakdown"] == {"score": 1.5, "merge": 0.5}
    assert run("bench", "everything").status == 2
