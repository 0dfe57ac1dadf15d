"""Schedules are read as they are meant, and what cannot be meant is told in a sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orienteer.errors import SettingsError
from orienteer.phase.schedule import Phase, parse_schedule
from orienteer.phase.settings import PhaseSettings


def test_a_schedule_is_read_in_its_order() -> None:
    assert parse_schedule("300*raar(0.87) 100*er") == (Phase("raar", 0.87, 300), Phase("er", 0.0, 100))


def test_methods_have_their_usual_relaxation_and_count_once() -> None:
    assert parse_schedule("HIO + dm, raar; er") == (
        Phase("hio", 0.9, 1),
        Phase("dm", 1.0, 1),
        Phase("raar", 0.87, 1),
        Phase("er", 0.0, 1),
    )


def test_groups_are_repeated() -> None:
    inner = (Phase("hio", 0.9, 80), Phase("er", 0.0, 20))
    assert parse_schedule("3*(80*hio(.9) 20*er) er") == inner * 3 + (Phase("er", 0.0, 1),)


@given(
    st.lists(
        st.one_of(
            st.builds(Phase, st.just("er"), st.just(0.0), st.integers(1, 999)),
            st.builds(
                Phase,
                st.sampled_from(["hio", "raar", "dm"]),
                st.integers(1, 100).map(lambda percent: percent / 100),
                st.integers(1, 999),
            ),
        ),
        min_size=1,
    )
)
def test_what_is_written_is_read_again(phases: list[Phase]) -> None:
    assert list(parse_schedule(" ".join(str(phase) for phase in phases))) == phases


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no iterations"),
        ("0*er", "no iterations"),
        ("100*cats", "no method 'cats'"),
        ("100*", "nothing follows"),
        ("100*200*er", "follows another number"),
        ("100 er", "'100' is out of place"),
        ("raar(2)", "must lie above 0"),
        ("raar()", "must contain one number"),
        ("raar(1.2.3)", "is not a number"),
        ("er(0.5)", "er takes no number"),
        ("5*(er", "not closed"),
        ("er)", "out of place"),
        ("5*)er", "out of place"),
        ("1000000*(99*er)", "more than"),
        ("er & hio", "'&' is out of place"),
    ],
)
def test_what_cannot_be_read_is_said_with_an_example(text: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why.replace("(", r"\(")) as error:
        parse_schedule(text)
    assert "500*raar(0.87) 100*er" in error.value.hint


def test_settings_refuse_a_wrong_schedule_and_an_unknown_group() -> None:
    with pytest.raises(SettingsError, match="no method 'cats'"):
        PhaseSettings(schedule="100*cats")
    with pytest.raises(SettingsError, match="no point group"):
        PhaseSettings(symmetry="Q7")
    assert PhaseSettings(symmetry="a5").symmetry == "I"
