"""From settings to particles."""

from pathlib import Path

import numpy as np
import pytest

from orienteer.errors import FileError, SettingsError
from orienteer.orientation.point_group import PointGroup
from orienteer.orientation.quaternion import to_matrix
from orienteer.particle.base import Particle
from orienteer.particle.named_bodies import BODY_NAMES, random_blobs, virus
from orienteer.particle.settings import ParticleSettings, particle_from_settings
from orienteer.particle.structure import Structure

PDB = (
    "ATOM      1  N   ALA A   1      11.000  12.000  13.000  1.00 20.00           N  \n"
    "ATOM      2  CA  ALA A   1      12.500  12.000  13.000  0.50 30.00           C  \n"
    "ATOM      3  C   ALA A   1      13.000  13.400  {z:6.3f}  1.00 30.00           C  \n"
    "HETATM    4 SE   MSE A   2      15.000  13.000  13.000  1.00 30.00          SE  \n"
    "HETATM    5  O   HOH A   3      19.000  13.000  13.000  1.00 30.00           O  \n"
)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    paths = tmp_path / "a.pdb", tmp_path / "b.pdb"
    for path, z in zip(paths, (13.0, 15.0), strict=True):
        path.write_text(PDB.format(z=z))
    return str(paths[0]), str(paths[1])


@pytest.mark.parametrize("name", BODY_NAMES)
def test_every_built_in_body_fits_its_diameter_and_scatters(name: str) -> None:
    ensemble = particle_from_settings(ParticleSettings(structure=name, diameter_A=200))
    (body,) = ensemble.particles
    assert isinstance(body, Particle)
    assert ensemble.names == (name,)
    if name != "blobs":  # whose Gaussian tails end nowhere
        assert body.radius_A == pytest.approx(100)
    assert body.amplitude([0.0, 0, 0]).real > 1e5


def test_the_virus_is_icosahedral_and_heavier_within(rng: np.random.Generator) -> None:
    body = virus(300.0)
    q = rng.normal(size=(10, 3)) * 0.02
    for quaternion in PointGroup("I").quaternions[:15]:
        np.testing.assert_allclose(body.amplitude(q @ to_matrix(quaternion)), body.amplitude(q), atol=1e-7)
    assert sum(part.particle.density for part in body.parts) == pytest.approx(0.47)


def test_blobs_depend_on_their_seed_alone() -> None:
    np.testing.assert_array_equal(random_blobs(200, 5, 3).positions_A, random_blobs(200, 5, 3).positions_A)
    assert not np.allclose(random_blobs(200, 5, 3).positions_A, random_blobs(200, 5, 4).positions_A)


def test_a_file_is_opened_as_the_settings_say(files: tuple[str, str]) -> None:
    (plain,) = particle_from_settings(ParticleSettings(structure=files[0])).particles
    (changed,) = particle_from_settings(
        ParticleSettings(structure=files[0], occupancies=False, b_factors=False, waters=True, anomalous=False)
    ).particles
    assert isinstance(plain, Structure)
    assert isinstance(changed, Structure)
    assert (len(plain), len(changed)) == (4, 5)
    assert changed.occupancy.min() == 1
    assert changed.b_factor_A2.max() == 0
    q = [0.1, 0.0, 0.1]
    assert changed.amplitude(q, 12_700.0) == changed.amplitude(q)
    assert plain.amplitude(q, 12_700.0) != plain.amplitude(q)


def test_solvent_and_hydration_stay_a_structure(files: tuple[str, str]) -> None:
    (dry,) = particle_from_settings(ParticleSettings(structure=files[0])).particles
    (wet,) = particle_from_settings(ParticleSettings(structure=files[0], hydration_A=3)).particles
    (contrast,) = particle_from_settings(
        ParticleSettings(structure=files[0], solvent_contrast=True)
    ).particles
    assert isinstance(wet, Structure)
    assert wet.n_electrons > dry.n_electrons
    (wider,) = particle_from_settings(
        ParticleSettings(structure=files[0], solvent_contrast=True, displaced_volume_scale=1.4)
    ).particles
    assert wider.n_electrons < contrast.n_electrons < dry.n_electrons


def test_conformations_and_paths_become_an_ensemble(files: tuple[str, str]) -> None:
    mixed = particle_from_settings(
        ParticleSettings(structure=files[0], conformations=(files[1],), weights=(1, 3))
    )
    assert mixed.names == ("a.pdb", "b.pdb")
    np.testing.assert_allclose(mixed.weights, [0.25, 0.75])
    path = particle_from_settings(
        ParticleSettings(structure=files[0], conformations=(files[1],), path_fractions=(0, 0.25, 1))
    )
    assert path.names == ("0", "0.25", "1")
    np.testing.assert_allclose(path.weights, 1 / 3)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"structure": "icosahedrn"}, "Did you mean 'icosahedron'"),
        ({"structure": "zzz"}, "Built in are virus"),
        ({"structure": "sphere", "hydration_A": 3}, "need a structure of atoms"),
        ({"structure": "sphere", "weights": (1, 2)}, "2 values for 1 state"),
        (
            {"structure": "sphere", "conformations": ("virus",), "path_fractions": (0.5,)},
            "two structures of atoms",
        ),
    ],
)
def test_settings_that_make_no_particle_say_why(values: dict, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        particle_from_settings(ParticleSettings(**values))
    assert words in str(caught.value)


def test_a_missing_file_is_a_file_error() -> None:
    with pytest.raises(FileError, match="does not exist"):
        particle_from_settings(ParticleSettings(structure="nowhere/model.pdb"))


def test_bounds_and_unknown_keys_hold() -> None:
    for wrong in ({"diameter_A": -1}, {"n_blobs": 0}, {"diametre_A": 3}):
        with pytest.raises(SettingsError):
            ParticleSettings(**wrong)


def test_every_setting_is_described() -> None:
    for field in ParticleSettings.model_fields.values():
        assert field.description
        assert field.description.endswith(".")
