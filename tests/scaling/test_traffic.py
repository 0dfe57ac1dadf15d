"""The model's figure of what ranks send, beside what real ranks have sent."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("traffic_script.py")


ONE_WAY = pytest.mark.slow(reason="four ranks share out frames and poses, every time")


@pytest.mark.parametrize(
    ("n", "method", "mesh", "given"),
    [
        (2, "mtip", "2x1", ("phase_at_once=True",)),
        (4, "emc", "2x2", ()),
        pytest.param(2, "mtip", "2x1", (), marks=ONE_WAY),
        pytest.param(2, "emc", "1x2", (), marks=ONE_WAY),
        pytest.param(3, "emc", "3x1", (), marks=ONE_WAY),
    ],
)
def test_ranks_send_what_the_model_says(
    run_ranks: Callable[..., str], n: int, method: str, mesh: str, given: tuple[str, ...]
) -> None:
    """The first step, which has more to send, and the sixth, in which sentinels are asked, too."""
    steps = json.loads(run_ranks(n, SCRIPT, method, mesh, "6", *given))
    assert [("sentinels" in step["parts"], "samples" in step["parts"]) for step in steps] == [
        (number in (0, 5), number == 0) for number in range(6)
    ]
    for step in steps:
        assert step["sent"] == pytest.approx(step["model"], rel=0.01)
