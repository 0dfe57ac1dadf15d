"""Every event that came is filtered, dropped or processed, and the numbers say so."""

import pytest

from orienteer.errors import OrienteerError
from orienteer.stream.counters import StreamCounters


def test_counters_add_up_when_every_event_is_decided() -> None:
    counters = StreamCounters(received=10, filtered=3, dropped=2, processed=4, malformed=7)
    assert not counters.adds_up
    counters.processed += 1
    assert counters.adds_up


def test_counters_are_added_and_come_back_from_a_file() -> None:
    one, other = StreamCounters(received=2, gaps=1), StreamCounters(received=3, late=5)
    total = one + other
    assert (total.received, total.gaps, total.late) == (5, 1, 5)
    assert total - other == one
    assert StreamCounters.from_dict({**total.as_dict(), "unknown": 3}) == total
    with pytest.raises(OrienteerError, match="whole number"):
        StreamCounters.from_dict({"received": "many"})
