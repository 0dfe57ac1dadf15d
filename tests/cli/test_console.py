"""What is printed for scripts is strict JSON."""

import json
from pathlib import Path

import numpy as np
import pytest

from orienteer.cli.console import print_json, run_reporting_errors
from orienteer.cli.doctor import Finding


def test_json_is_strict_whatever_the_values(capsys: pytest.CaptureFixture[str]) -> None:
    print_json(
        {
            "nan": float("nan"),
            "array": np.array([1.0, np.inf]),
            "number": np.float32(0.5),
            "path": Path("a"),
            "findings": [Finding("part", True, "detail")],
            3: (1, None, True),
        }
    )

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    result = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert result["nan"] is None
    assert result["array"] == [1.0, None]
    assert result["findings"][0]["part"] == "part"
    assert result["3"] == [1, None, True]


def test_a_path_too_long_for_any_disk_is_no_defect(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run_reporting_errors(lambda: (tmp_path / ("a" * 300)).stat(), debug=False, as_json=True) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["error"].endswith("...: the name is too long.")
    assert len(told["error"]) < 120
    assert told["hint"] == "Give another path."
