"""Any number of ranks gives the same models and the same assignments as one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SCRIPT = Path(__file__).with_name("reconstruction_script.py")
LESS_OF_THE_SAME = pytest.mark.slow(reason="ranks share out the same problem in other ways every time")
# What a rank alone makes of a problem, by its arguments.
_alone: dict[tuple[str, ...], dict[str, Any]] = {}


@pytest.fixture
def on_ranks(run_ranks: Callable[..., str], tmp_path: Path) -> Callable[..., dict[str, Any]]:
    def run(n: int, method: str, mesh: str, balance: str, *given: str) -> dict[str, Any]:
        file = tmp_path / f"{n}.npz"
        run_ranks(n, SCRIPT, method, mesh, balance, given[0], str(file), *given[1:])
        with np.load(file) as found:
            return dict(found)

    return run


def alone_on(on_ranks: Any, method: str, problem: tuple[str, ...]) -> dict[str, Any]:
    """What a rank alone makes of a problem, wherever the halves are."""
    key = (method, *(given for given in problem if given not in (APART, TOGETHER)))
    if key not in _alone:
        _alone[key] = on_ranks(1, method, "auto", "static", *key[1:])
    return _alone[key]


def assert_same(found: dict[str, Any], alone: dict[str, Any], tolerance: float) -> None:
    assert len(found["nats"]) == len(alone["nats"])
    one, several = (np.nan_to_num(result["values"]) for result in (alone, found))
    assert np.linalg.norm(several - one) < tolerance * np.linalg.norm(one)
    np.testing.assert_array_equal(found["table_model"], alone["table_model"])
    # Poses that have left the grid end at the top of the likelihood, which is flat: rounding moves them.
    closeness = np.abs((found["table_quaternion"] * alone["table_quaternion"]).sum(axis=1))
    is_same = np.degrees(2 * np.arccos(np.minimum(closeness, 1))) < 0.05
    assert is_same.all()
    np.testing.assert_allclose(found["table_fluence"], alone["table_fluence"], rtol=1e-3)
    np.testing.assert_allclose(found["nats"], alone["nats"], rtol=1e-5)
    # All ranks say what they have sent.
    assert (found["sent"] > 0).all()
    assert not alone["sent"].any()


# Steps and settings.  A merge of M-TIP ends at a residual: it is as exact as that says.
# One frame that two poses fit equally well would go either way; what is deterministic does so every time.
EMC = ("400", "level=3", "frames=200", "deterministic=True")
ON_GRID = ("400", "level=3", "frames=200", "refine=False")
MTIP = ("16", "level=3", "frames=90", "photons=2000.0", "tolerance=1e-5")
# Phasing makes much of the last bits, which are the same here where no half has more than one group of ranks.
PHASED = ("4", "level=3", "frames=90", "photons=2000.0", "phase_at_once=True")
APART, TOGETHER = "half_sets='apart'", "half_sets='together'"
# What is listed for a second pass ends at a threshold; of few frames, one entry more or less would go far.
TWO_PASSES = ("400", "two_passes=True", "frames=300", "photons=2000.0", "deterministic=True")
STATES = ("40", "level=3", "models=2", "junk_classes=1", "frames=60")
# Before a model has settled, rounding grows from step to step.
BRIGHT = ("5", "level=3", "frames=60", "background='estimate'", "simulate={'fluence_jitter': 0.5}")
SIGNAL = ("3", "level=3", "frames=60", "likelihood='gaussian'")


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("n", "method", "mesh", "balance", "problem", "tolerance"),
    [
        pytest.param(2, "emc", "auto", "dynamic", EMC, 1e-5, marks=LESS_OF_THE_SAME),
        pytest.param(3, "emc", "1x3", "static", EMC, 1e-5, marks=pytest.mark.slow),
        (3, "emc", "2x2", "dynamic", EMC, 1e-5),
        pytest.param(4, "emc", "2x2", "dynamic", EMC, 1e-5, marks=LESS_OF_THE_SAME),
        pytest.param(2, "emc", "auto", "dynamic", (*EMC, APART), 1e-9, marks=LESS_OF_THE_SAME),
        pytest.param(3, "emc", "auto", "dynamic", (*EMC, APART), 1e-5, marks=pytest.mark.slow),
        pytest.param(4, "emc", "2x2", "static", (*EMC, TOGETHER), 1e-5, marks=pytest.mark.slow),
        pytest.param(4, "emc", "2x2", "dynamic", ON_GRID, 1e-5, marks=pytest.mark.slow),
        (2, "mtip", "auto", "dynamic", PHASED, 1e-9),
        pytest.param(2, "mtip", "1x2", "dynamic", PHASED, 1e-9, marks=LESS_OF_THE_SAME),
        pytest.param(3, "mtip", "auto", "dynamic", PHASED, 1e-9, marks=pytest.mark.slow),
        pytest.param(3, "mtip", "2x2", "dynamic", (*PHASED, APART), 1e-9, marks=pytest.mark.slow),
        pytest.param(4, "mtip", "auto", "dynamic", PHASED, 1e-9, marks=pytest.mark.slow),
        pytest.param(4, "mtip", "2x2", "dynamic", PHASED, 1e-9, marks=pytest.mark.slow),
        pytest.param(2, "mtip", "auto", "dynamic", MTIP, 1e-5, marks=pytest.mark.slow),
        pytest.param(3, "mtip", "1x3", "dynamic", MTIP, 1e-5, marks=pytest.mark.slow),
        pytest.param(4, "mtip", "2x2", "dynamic", MTIP, 1e-5, marks=pytest.mark.slow),
        pytest.param(3, "emc", "2x2", "dynamic", TWO_PASSES, 1e-5, marks=LESS_OF_THE_SAME),
        pytest.param(3, "emc", "2x2", "dynamic", (*TWO_PASSES, APART), 1e-5, marks=pytest.mark.slow),
        pytest.param(2, "emc", "auto", "static", STATES, 1e-5, marks=pytest.mark.slow),
        pytest.param(4, "emc", "2x2", "static", (*STATES, APART), 1e-5, marks=pytest.mark.slow),
        pytest.param(3, "emc", "2x2", "dynamic", BRIGHT, 1e-4, marks=pytest.mark.slow),
        pytest.param(2, "emc", "auto", "dynamic", SIGNAL, 1e-5, marks=pytest.mark.slow),
    ],
)
def test_ranks_come_to_the_same(
    on_ranks: Any, n: int, method: str, mesh: str, balance: str, problem: tuple[str, ...], tolerance: float
) -> None:
    assert_same(on_ranks(n, method, mesh, balance, *problem), alone_on(on_ranks, method, problem), tolerance)


# Several batches, whose tiles ranks claim in turns.
SOME = ("2", "level=3", "frames=40", "photons=2000.0", "memory_GiB=0.001", TOGETHER)
CLASSES = ("2", "level=3", "frames=60", "models=2", "junk_classes=1", "deterministic=True", TOGETHER)


@pytest.mark.parametrize(
    ("n", "method", "mesh", "problem"),
    [
        pytest.param(2, "mtip", "2x1", SOME, marks=LESS_OF_THE_SAME),
        pytest.param(3, "mtip", "3x1", SOME, marks=LESS_OF_THE_SAME),
        pytest.param(2, "mtip", "1x2", (*SOME[:-1], APART), marks=LESS_OF_THE_SAME),
        (4, "mtip", "2x2", (*SOME[:-1], APART)),
        pytest.param(3, "emc", "3x1", CLASSES, marks=LESS_OF_THE_SAME),
        pytest.param(3, "emc", "3x1", (*TWO_PASSES, TOGETHER), marks=pytest.mark.slow),
    ],
)
@pytest.mark.timeout(900)
def test_ranks_that_share_out_poses_have_the_bits_of_one(
    on_ranks: Any, n: int, method: str, mesh: str, problem: tuple[str, ...]
) -> None:
    """Sums over poses end in the same bits: M-TIP makes much of the last of them."""
    alone = alone_on(on_ranks, method, problem)
    found = on_ranks(n, method, mesh, "dynamic", *problem)
    np.testing.assert_array_equal(found["values"], alone["values"])
    for name in alone:
        if name == "sent":
            continue
        # Where halves are apart, sentinels are in batches of their own, and rounded otherwise.
        tolerance = 1e-5 if problem[-1] == APART and name.startswith("table") else 0.0
        np.testing.assert_allclose(found[name], alone[name], rtol=tolerance, err_msg=name)


@pytest.mark.slow(reason="a run on too many ranks is tried every time, in tests/run/test_ranks.py")
def test_more_ranks_than_frames_are_refused_in_one_sentence(run_ranks: Callable[..., str]) -> None:
    with pytest.raises(AssertionError, match="3 ranks cannot share 2 frames"):
        run_ranks(3, SCRIPT, "emc", "auto", "dynamic", "1", "none.npz", "frames=2")
