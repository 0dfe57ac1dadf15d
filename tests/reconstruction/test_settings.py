"""The settings of both methods: what cannot be meant is refused when they are made."""

import pytest

from orienteer.errors import SettingsError
from orienteer.mtip.settings import MtipSettings
from orienteer.reconstruction.settings import EmcSettings

METHODS = (EmcSettings, MtipSettings)


@pytest.mark.parametrize("settings", METHODS)
@pytest.mark.parametrize("name", ["K", "C0", "D1", "C100", ""])
def test_a_point_group_that_does_not_exist_is_refused_with_those_that_do(
    settings: type[EmcSettings], name: str
) -> None:
    with pytest.raises(
        SettingsError, match=f"no point group '{name}'.*C1 to C99, D2 to D99, T, O and I.*auto"
    ):
        settings(symmetry=name)


@pytest.mark.parametrize("settings", METHODS)
@pytest.mark.parametrize(
    ("name", "meant"), [("auto", "auto"), (" Auto", "auto"), ("i", "I"), ("a5", "I"), ("d12", "D12")]
)
def test_point_groups_have_one_name(settings: type[EmcSettings], name: str, meant: str) -> None:
    assert settings(symmetry=name).symmetry == meant


def test_a_symmetry_that_is_no_text_is_refused() -> None:
    with pytest.raises(SettingsError, match="valid string"):
        EmcSettings(symmetry=5)  # type: ignore[arg-type]
