"""Times of jobs, as people, Slurm and we write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orienteer.cluster.duration import parse_duration, parse_slurm_time, slurm_time


@given(st.integers(1, 10**7))
def test_a_time_for_slurm_means_the_same_to_slurm_and_to_us(seconds: int) -> None:
    assert parse_duration(slurm_time(seconds)) == seconds
    assert parse_slurm_time(slurm_time(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("4h", 14400), ("1.5h", 5400), ("1d12h", 129600), ("90 min", 5400), ("2D 30m", 174600), ("45s", 45)],
)
def test_times_are_read_as_people_write_them(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "said"),
    [("4:00", "4:00:00, 4h or 4min"), ("30", "30min"), ("soon", "not a time"), ("4h sharp", "not a time")],
)
def test_what_slurm_would_read_otherwise_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_duration(text)


@pytest.mark.parametrize("text", ["UNLIMITED", "INVALID", "NOT_SET", ""])
def test_a_time_without_an_end_is_none(text: str) -> None:
    assert parse_slurm_time(text) is None
