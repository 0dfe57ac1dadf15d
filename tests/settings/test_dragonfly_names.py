"""Who comes from Dragonfly is told what its settings are called here."""

import re
from pathlib import Path

import pytest

from orienteer.errors import SettingsError
from orienteer.run.settings import Settings
from orienteer.settings import dragonfly_names
from orienteer.settings.dragonfly_names import called_here
from orienteer.settings.loading import load_settings

CONFIGURATION = """
[parameters]
detd = 738
lambda = 2.7

[emc]
in_photons_file = make_data:::out_photons_file
num_div = 6
"""
WORDS = [*dragonfly_names._KEYS.values(), *dragonfly_names._SECTIONS.values()]


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("emc.num_div=6", "[emc] level"),
        ("emc.beta_schedule=2", "the temperature is chosen automatically"),
        ("emc.radius=30", "the resolution improves by itself"),
        ("emc.sym_icosahedral=1", "[emc] symmetry"),
        ("emc.in_photons_file=a.emc", "[run] data"),
        ("detector.detd=738", "[detector] distance_m"),
        ("parameters.detd=738", "[detector] and [beam]"),
    ],
)
def test_a_setting_of_dragonfly_is_told_by_its_name_here(override: str, words: str) -> None:
    with pytest.raises(SettingsError, match="unknown") as refused:
        load_settings(Settings, None, [override])
    assert words in refused.value.hint


def test_a_configuration_of_dragonfly_is_told_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / "config.ini"
    path.write_text(CONFIGURATION)
    with pytest.raises(SettingsError, match="is a configuration of Dragonfly") as refused:
        load_settings(Settings, path)
    assert "Come from Dragonfly" in refused.value.hint
    page = Path(__file__).parents[2] / re.findall(r"docs/\S+\.md", refused.value.hint)[0]
    assert page.read_text().startswith("# Come from Dragonfly\n")


@pytest.mark.parametrize("words", sorted(set(WORDS)))
def test_what_is_named_there_exists_here(words: str) -> None:
    for section, key in re.findall(r"\[(\w+)\] (\w+)", words):
        fields = Settings.model_fields[section].annotation.model_fields
        assert key in fields or key in ("and", "hold", "describe", "describes"), words


def test_names_of_ours_are_not_taken_for_theirs() -> None:
    for section, field in Settings.model_fields.items():
        assert called_here(section) == ""
        for key in field.annotation.model_fields:
            assert called_here(key, section) == "", (section, key)
