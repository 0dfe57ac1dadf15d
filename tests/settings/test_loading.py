"""Settings: precedence of file and overrides, and errors that name the line and the right key."""

from pathlib import Path
from typing import Literal

import pytest
from pydantic import Field

from orienteer.errors import FileError, SettingsError
from orienteer.settings.describing import describe_settings, example_toml
from orienteer.settings.loading import key_lines, load_settings
from orienteer.settings.section import Section


class Orientation(Section):
    grid_spacing_deg: float = Field(5.0, gt=0, description="Spacing of the grid, in degrees.")
    method: Literal["hopf", "600-cell"] = Field("600-cell", description="Kind of grid.")


class Simulate(Section):
    frames: int = Field(1000, ge=1, description="Frames to make.")
    structure: str = Field("virus", description="What to look at.")
    shifts: tuple[float, ...] = Field((), description="Shifts, in pixels.")


class Settings(Section):
    orientation: Orientation = Orientation()
    simulate: Simulate = Simulate()


def write(folder: Path, text: str) -> Path:
    path = folder / "run.toml"
    path.write_text(text)
    return path


def test_defaults_hold_where_nothing_is_said() -> None:
    assert load_settings(Settings) == Settings()


def test_overrides_win_over_the_file_and_the_last_one_wins(tmp_path: Path) -> None:
    path = write(tmp_path, "[simulate]\nframes = 5\nshifts = [1, 2]\n")
    settings = load_settings(
        Settings, path, ["simulate.frames=7", "simulate.frames=8", "simulate.structure=3iyf.pdb.gz"]
    )
    assert settings.simulate == Simulate(frames=8, structure="3iyf.pdb.gz", shifts=(1, 2))


def test_a_mistyped_key_names_the_line_and_the_right_key(tmp_path: Path) -> None:
    path = write(tmp_path, "# a comment\n[simulate]\nframes = 3\n\n[orientation]\ngrid_spacing_degs = 2\n")
    with pytest.raises(SettingsError, match=r"run\.toml line 6: unknown key 'grid_spacing_degs'") as caught:
        load_settings(Settings, path)
    assert caught.value.hint == "Did you mean 'grid_spacing_deg'?"


def test_a_key_in_the_wrong_section_is_sent_to_the_right_one(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="line 2") as caught:
        load_settings(Settings, write(tmp_path, "[orientation]\nframes = 3\n"))
    assert caught.value.hint == "'frames' belongs to [simulate]."


def test_a_mistyped_section_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="line 1: unknown section 'simulat'") as caught:
        load_settings(Settings, write(tmp_path, "[simulat]\nframes = 3\n"))
    assert "simulate" in caught.value.hint


def test_a_wrong_value_names_the_line_and_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(
        SettingsError, match=r"line 2: \[simulate\] frames = 'ten': input should be a valid integer"
    ):
        load_settings(Settings, write(tmp_path, "[simulate]\nframes = 'ten'\n"))
    with pytest.raises(SettingsError, match="'600-cell'"):
        load_settings(Settings, None, ["orientation.method=fibonacci"])


@pytest.mark.parametrize(
    "override", ["frames=3", "simulate.frames", "=3", "simulate.=3", "simulate.frames.deep=3"]
)
def test_a_malformed_override_is_an_error(override: str) -> None:
    with pytest.raises(SettingsError):
        load_settings(Settings, None, [override])


def test_broken_toml_and_missing_or_binary_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="line 1"):
        load_settings(Settings, write(tmp_path, "[simulate\n"))
    with pytest.raises(FileError, match="no such settings file"):
        load_settings(Settings, tmp_path / "absent.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\x89HDF\r\n\x1a\n\xff\xfe")
    with pytest.raises(FileError, match="not a text file"):
        load_settings(Settings, binary)
    with pytest.raises(FileError):
        load_settings(Settings, tmp_path)


def test_dotted_keys_and_quoted_headers_are_located() -> None:
    assert key_lines('simulate.frames = 3\n["emc"] # here\n"a" = 1') == {
        ("simulate", "frames"): 1,
        ("emc",): 2,
        ("emc", "a"): 3,
    }


def test_every_setting_is_described_and_the_example_file_loads(tmp_path: Path) -> None:
    rows = describe_settings(Settings)
    assert [(row.section, row.key) for row in rows][:2] == [
        ("orientation", "grid_spacing_deg"),
        ("orientation", "method"),
    ]
    assert all(row.description for row in rows)
    text = example_toml(describe_settings(Settings))
    assert load_settings(Settings, write(tmp_path, text)) == Settings()
    uncommented = "\n".join(line.removeprefix("# ") if " = " in line else line for line in text.splitlines())
    assert load_settings(Settings, write(tmp_path, uncommented)) == Settings()


def test_a_wrong_value_is_found_also_where_an_override_hides_it(tmp_path: Path) -> None:
    path = write(tmp_path, "[orientation]\ngrid_spacing_deg = -1\n[simulate]\nframes = 3\n")
    with pytest.raises(SettingsError, match=r"line 2: \[orientation\] grid_spacing_deg = -1"):
        load_settings(Settings, path, ["orientation.grid_spacing_deg=2"])
    path = write(tmp_path, "[simulate]\nframes = 3\n")
    assert load_settings(Settings, path, ["simulate.frames=4"]).simulate.frames == 4


def test_values_that_only_make_sense_together_may_come_from_file_and_override(tmp_path: Path) -> None:
    from orienteer.run.settings import Settings as All

    path = write(tmp_path, "[beam]\npulse_photons = 1e12\n")
    settings = load_settings(All, path, ["beam.focus_fwhm_um=0.5"])
    assert settings.beam.focus_fwhm_um == (0.5,)


def test_settings_made_in_python_say_what_was_meant() -> None:
    from orienteer.reconstruction.settings import EmcSettings

    with pytest.raises(SettingsError, match="EmcSettings: unknown key 'iteration'") as caught:
        EmcSettings(iteration=2)  # type: ignore[call-arg]
    assert caught.value.hint == "Did you mean 'iterations'?"
    with pytest.raises(SettingsError, match=r"EmcSettings: iterations = 1\.5: "):
        EmcSettings(iterations=1.5)  # type: ignore[arg-type]


def test_an_override_that_nothing_reads_is_refused_and_a_file_may_hold_it(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[orientation]\ngrid_spacing_deg = 3\n")
    load_settings(Settings, file, ["simulate.frames=7"], ("simulate",))
    with pytest.raises(SettingsError) as caught:
        load_settings(Settings, None, ["orientation.grid_spacing_deg=3"], ("simulate",))
    assert str(caught.value).startswith(
        "--set orientation.grid_spacing_deg=3: this command does not read [orientation]."
    )
    assert caught.value.hint == "This command reads [simulate]."


@pytest.mark.parametrize("text", ["04:00:00", "2026-01-01", "12345", "1e3", "true", "a b", '"a b"', " a b "])
def test_what_is_to_be_text_needs_no_quotes_whatever_it_looks_like(text: str) -> None:
    found = load_settings(Settings, overrides=[f"simulate.structure={text}"])
    assert found.simulate.structure == text.strip().strip('"')


def test_text_without_quotes_in_a_file_is_told_how_to_be_written(tmp_path: Path) -> None:
    path = write(tmp_path, "[simulate]\nstructure = 04:00:00\n")
    with pytest.raises(SettingsError, match=r"line 2: .*should be a valid string") as refused:
        load_settings(Settings, path)
    assert refused.value.hint == 'Write text in quotes:  structure = "04:00:00"'


class Beam(Section):
    wavelength_A: float = Field(0.0, ge=0, description="Wavelength in angstrom; 0: not used.")
    photon_energy_eV: float = Field(4600.0, gt=10, description="Photon energy in eV.")
    distance_m: float = Field(0.2, description="Distance in metres.")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"wavelength_A": 2.7e-10}, "2.7e-10 m are 2.7 A."),
        ({"photon_energy_eV": 4.6}, "4.6 keV are 4600 eV."),
        ({"wavelength_A": 4600}, "4600 eV are a wavelength of 2.695 A."),
        ({"distance_m": 200}, "200 mm are 0.2 m."),
    ],
)
def test_a_number_in_another_unit_is_refused_and_told_in_the_right_one(
    given: dict[str, float], meant: str
) -> None:
    with pytest.raises(SettingsError) as raised:
        Beam(**given)
    assert raised.value.hint == meant


def test_numbers_that_may_be_meant_are_taken() -> None:
    assert Beam(wavelength_A=0).wavelength_A == 0
    assert Beam(wavelength_A=0.01, photon_energy_eV=92).wavelength_A == 0.01


def test_settings_are_printed_as_they_would_be_written() -> None:
    assert str(Beam()) == "Beam()"
    assert str(Beam(wavelength_A=2.0)) == "Beam(wavelength_A=2.0)"


class Particle(Section):
    diameter_A: float = Field(0.0, ge=0, le=1e5, description="Largest extent in angstrom; 0: not known.")


class Experiment(Section):
    beam: Beam = Beam()
    particle: Particle = Particle()
    other_particle: Particle = Particle()


def test_what_is_not_a_number_is_called_so(tmp_path: Path) -> None:
    path = write(tmp_path, "[particle]\ndiameter_A = nan\n")
    with pytest.raises(SettingsError, match=r"line 2: \[particle\] diameter_A = nan: is not a number\.$"):
        load_settings(Experiment, path)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("diameter_nm = 24", "Did you mean 'diameter_A'? 24 nm are 240 A."),
        ("diameter_m = 2.4e-8", "Did you mean 'diameter_A'? 2.4e-08 m are 240 A."),
        ("diameter_nm = 'small'", "Did you mean 'diameter_A'?"),
        ("diametre_A = 24", "Did you mean 'diameter_A'?"),
    ],
)
def test_a_key_in_another_unit_is_converted(tmp_path: Path, line: str, hint: str) -> None:
    with pytest.raises(SettingsError, match="line 2: unknown key") as refused:
        load_settings(Experiment, write(tmp_path, f"[particle]\n{line}\n"))
    assert refused.value.hint == hint


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("photon_energy_eV = 4600", "'photon_energy_eV' belongs to [beam]: write that header above it."),
        (
            "diameter_A = 240",
            "'diameter_A' belongs to [particle] or [other_particle]: write that header above it.",
        ),
        ("colour = 3", "Known sections: beam, particle, other_particle."),
    ],
)
def test_a_key_above_all_sections_is_sent_to_its_own(tmp_path: Path, line: str, hint: str) -> None:
    name = line.split()[0]
    with pytest.raises(SettingsError, match=f"line 1: '{name}' is not in a section.") as refused:
        load_settings(Experiment, write(tmp_path, f"{line}\n"))
    assert refused.value.hint == hint
