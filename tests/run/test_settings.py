"""All settings together: defaults are valid, described, and survive a round through a file."""

from pathlib import Path

from orienteer.run.settings import Settings
from orienteer.settings.describing import describe_settings, example_toml
from orienteer.settings.loading import load_settings


def test_every_setting_has_a_description_that_ends_like_a_sentence() -> None:
    rows = describe_settings(Settings)
    assert {row.section for row in rows} == set(Settings.model_fields)
    for row in rows:
        assert row.description.endswith("."), f"[{row.section}] {row.key}"
        assert "\n" not in row.description


def test_the_example_file_with_everything_spelled_out_means_the_defaults(tmp_path: Path) -> None:
    lines = [
        line.removeprefix("# ") if " = " in line else line
        for line in example_toml(describe_settings(Settings)).splitlines()
    ]
    path = tmp_path / "all.toml"
    path.write_text("\n".join(lines))
    assert load_settings(Settings, path) == Settings()


def test_the_example_file_names_every_choice() -> None:
    lines = example_toml(describe_settings(Settings)).splitlines()
    told = dict(zip(lines[1:], lines, strict=False))
    assert told['# background = "given"'] == '# One of: "given", "estimate".'
    assert told["# models = 1"] == '# One of: an integer, "auto".'
    assert told["# positivity = true"] == "# Whether the density must not be negative."
    for line in lines:
        if line.startswith("# One of:") and "integer" not in line:
            default = lines[lines.index(line) + 1].partition(" = ")[2]
            assert default in line
