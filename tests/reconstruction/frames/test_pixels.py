"""The pixels of a data set: how far they reach."""

from typing import Any

import pytest

from orienteer.reconstruction.frames.pixels import pixel_table


@pytest.mark.parametrize("share", [0.0, 1.0, 0.995, 2.0])
def test_a_resolution_that_the_data_reach_is_no_news(tiny: Any, share: float) -> None:
    pixels = pixel_table(tiny.source())
    assert pixels.beyond_edge(share / pixels.edge_inv_A(0.0)) == ""


def test_a_resolution_beyond_the_data_is_told(tiny: Any) -> None:
    pixels = pixel_table(tiny.source())
    edge_A = 1 / pixels.edge_inv_A(0.0)
    assert 40 < edge_A < 50  # the corner of the detector
    assert pixels.beyond_edge(4.0) == f"4 A was asked for; the data end at {edge_A:.3g} A."
    assert pixels.beyond_edge(6.0).endswith(f"the data end at {edge_A:.3g} A. 6 nm would be 60 A.")


def test_a_run_tells_where_its_data_end_before_the_resolution_that_was_asked_for(tiny: Any) -> None:
    assert [remark for remark in tiny.emc(resolution_A=6.0).remarks if "6 A was asked for" in remark]
    assert not [remark for remark in tiny.emc(resolution_A=100.0).remarks if "asked for" in remark]
