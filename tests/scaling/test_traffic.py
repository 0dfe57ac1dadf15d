"""The model's figure of what ranks send, beside what real ranks have sent."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("traffic_script.py")
# Sentinels are asked, and frames judged, only now and then.
PLAIN = ("sentinels=0.0", "reject_junk=False")


@pytest.mark.parametrize(("n", "method", "mesh"), [(2, "emc", "1x2"), (2, "mtip", "2x1"), (4, "emc", "2x2")])
def test_ranks_send_what_the_model_says(
    run_ranks: Callable[..., str], n: int, method: str, mesh: str
) -> None:
    steps = json.loads(run_ranks(n, SCRIPT, method, mesh, "3", *PLAIN))
    # The first step also sends what is known from then on.
    for step in steps[1:]:
        assert step["sent"] == pytest.approx(step["model"], rel=0.01)
