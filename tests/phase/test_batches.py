"""Starts in batches need no more memory than was said before."""

import tracemalloc

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.phase import batches
from orienteer.phase.batches import refuse_too_many_starts
from orienteer.phase.conclusion import conclude
from orienteer.phase.data import phasing_data


def test_comparing_starts_takes_no_more_memory_than_was_said(body, truth_of) -> None:
    made, starts = body(speckles=6.0), 24
    data = phasing_data(made.intensity, device="cpu")
    truth = truth_of(made, data).astype(np.float32)
    rng = np.random.default_rng(0)
    scatter = 0.01 * truth.max() * rng.normal(size=(starts, *truth.shape))
    densities = (truth + scatter).astype(np.float32)
    none = np.zeros(starts)
    few = slice(0, 2)  # what is loaded and kept once is nobody's
    conclude(densities[few], densities[few] > 0, none[few], none[few], none[few], data)
    tracemalloc.start()
    try:
        conclude(densities, densities > 0, none, none, none, data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    said = refuse_too_many_starts(data, starts) * 2**30
    assert 0.5 * said < peak + densities.nbytes < said


@pytest.mark.parametrize(("share", "hint"), [(2.5, "Ask for up to 2 starts, or phase to"), (0.5, "Phase to")])
def test_starts_that_do_not_fit_are_refused_with_what_fits(
    body, monkeypatch: pytest.MonkeyPatch, share: float, hint: str
) -> None:
    data = phasing_data(body(speckles=6.0).intensity, device="cpu")
    each = refuse_too_many_starts(data, 1) * 2**30
    monkeypatch.setattr(batches, "_free_bytes", lambda data: share * each / batches._SHARE_IN_THE_END)
    with pytest.raises(OrienteerError, match="10 starts of") as refused:
        refuse_too_many_starts(data, 10)
    assert refused.value.hint == f"{hint} a coarser resolution."
