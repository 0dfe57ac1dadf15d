"""A diameter that the data contradict is doubted, and one of which they show nothing is refused."""

from typing import Any

import pytest

from orienteer.errors import SettingsError
from orienteer.reconstruction.given_size import refuse_too_small, size_doubt


@pytest.mark.parametrize("given_A", [130.0, 250.0, 490.0])
def test_about_the_right_size_is_taken(given_A: float) -> None:
    assert size_doubt(given_A, 250.0) == ""
    refuse_too_small(given_A, 44.0, 250.0)


def test_another_size_is_doubted_and_nm_are_recognised() -> None:
    assert "of 250 A" in size_doubt(600.0, 250.0)
    assert "nm" not in size_doubt(600.0, 250.0)
    assert "Is one of them in nm" in size_doubt(2500.0, 250.0)


def test_frames_that_tell_no_size_contradict_none() -> None:
    assert size_doubt(24.0, 0.0) == ""


@pytest.mark.parametrize(("seen_A", "hint"), [(249.0, "Is one of them in nm"), (0.0, "Give a larger")])
def test_less_than_the_data_can_show_is_refused(seen_A: float, hint: str) -> None:
    with pytest.raises(
        SettingsError, match=r"diameter_A = 24: the data end at a resolution of 44\.3 A"
    ) as told:
        refuse_too_small(24.0, 44.3, seen_A)
    assert hint in told.value.hint


def test_a_run_doubts_and_refuses_what_its_frames_contradict(simulated: Any) -> None:
    from orienteer.particle.named_bodies import random_blobs

    data = simulated(random_blobs(200.0, 20, 5), 40, 34.0, frames=200, photons_per_frame=1000)
    assert not [remark for remark in data.emc().remarks if "was given" in remark]
    assert [remark for remark in data.emc(diameter_A=60.0).remarks if "of 60 A was given" in remark]
    with pytest.raises(SettingsError, match="diameter_A = 20: the data end"):
        data.emc(diameter_A=20.0)
