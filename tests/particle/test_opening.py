"""Opening PDB and mmCIF files: what is kept, what is left out, and every way a file can be wrong."""

import gzip
from pathlib import Path

import gemmi
import numpy as np
import pytest

from orienteer.errors import FileError
from orienteer.particle.opening import open_structure, recognise_structure

BIOMT = """REMARK 350 BIOMOLECULE: 1
REMARK 350 APPLY THE FOLLOWING TO CHAINS: A
REMARK 350   BIOMT1   1  1.000000  0.000000  0.000000        0.00000
REMARK 350   BIOMT2   1  0.000000  1.000000  0.000000        0.00000
REMARK 350   BIOMT3   1  0.000000  0.000000  1.000000        0.00000
REMARK 350   BIOMT1   2 -1.000000  0.000000  0.000000       40.00000
REMARK 350   BIOMT2   2  0.000000 -1.000000  0.000000        0.00000
REMARK 350   BIOMT3   2  0.000000  0.000000  1.000000        0.00000
"""


def atom(
    serial: int, name: str, residue: str, number: int, xyz: tuple[float, float, float], element: str, *,
    record: str = "ATOM", altloc: str = " ", chain: str = "A", occupancy: float = 1.0, b_factor: float = 20.0,
) -> str:  # fmt: skip
    x, y, z = xyz
    padded = f"{name:<4}" if len(name) == 4 or len(element) == 2 else f" {name:<3}"
    return (
        f"{record:<6}{serial:>5} {padded}{altloc}{residue:>3} {chain}{number:>4}    "
        f"{x:8.3f}{y:8.3f}{z:8.3f}{occupancy:6.2f}{b_factor:6.2f}          {element:>2}\n"
    )


ATOMS = [
    atom(1, "N", "MSE", 1, (1, 2, 3), "N"),
    atom(2, "CA", "MSE", 1, (2.5, 2, 3), "C", b_factor=35.5),
    atom(3, "SE", "MSE", 1, (4, 3, 1), "Se", occupancy=0.7),
    atom(4, "CB", "SER", 2, (7, 1, 2), "C", altloc="A", occupancy=0.4),
    atom(5, "CB", "SER", 2, (7, 1, 3), "C", altloc="B", occupancy=0.6),
    atom(6, "OG", "SER", 2, (8, 1, 1), "O", altloc="A", occupancy=0.4),
    atom(7, "OG", "SER", 2, (8, 1, 4), "O", altloc="B", occupancy=0.6),
    atom(8, "H", "SER", 2, (9, 2, 4), "H"),
    atom(9, "ZN", "ZN", 101, (10, 10, 10), "ZN", record="HETATM"),
    atom(10, "CA", "CA", 102, (0, 10, 5), "CA", record="HETATM"),
    atom(11, "O", "HOH", 201, (20, 1, 1), "O", record="HETATM"),
    atom(12, "O", "HOH", 202, (20, 5, 1), "O", record="HETATM"),
]


@pytest.fixture
def pdb(tmp_path: Path):
    def write(lines: list[str] | str, name: str = "model.pdb") -> Path:
        path = tmp_path / name
        path.write_text("".join(lines) + "END\n")
        return path

    return write


def elements(structure) -> list[str]:
    return [structure.table.names[kind] for kind in structure.scatterer]


def test_every_element_is_kept_with_its_columns_and_waters_are_left_out_with_a_count(pdb) -> None:
    structure = open_structure(pdb(ATOMS), centre=False)
    assert elements(structure) == ["N", "C", "Se", "C", "O", "H", "Zn", "Ca"]
    np.testing.assert_allclose(structure.positions_A[6], [10, 10, 10])
    assert structure.b_factor_A2[1] == pytest.approx(35.5)
    assert structure.occupancy[2] == pytest.approx(0.7)
    assert structure.labels.residue_name[6] == "ZN"
    assert any("2 water atoms were left out" in remark for remark in structure.remarks)
    assert structure.n_electrons == pytest.approx(7 + 6 + 0.7 * 34 + 6 + 8 + 1 + 30 + 20)


def test_each_kind_of_atom_can_be_chosen(pdb) -> None:
    path = pdb(ATOMS)
    assert len(open_structure(path, waters=True)) == 10
    assert "H" not in elements(open_structure(path, hydrogens=False))
    without_hetero = elements(open_structure(path, hetero_atoms=False, waters=True))
    assert "Zn" not in without_hetero
    assert len(without_hetero) == 8


def test_the_alternate_location_of_highest_occupancy_stands_for_all(pdb) -> None:
    structure = open_structure(pdb(ATOMS), centre=False)
    serine = structure.selected(structure.labels.residue_number == 2)
    np.testing.assert_allclose(serine.positions_A[:2], [[7, 1, 3], [8, 1, 4]])
    np.testing.assert_allclose(serine.occupancy, 1.0)
    first = open_structure(pdb(ATOMS), altloc="A", centre=False)
    np.testing.assert_allclose(first.positions_A[3:5], [[7, 1, 2], [8, 1, 1]])
    every = open_structure(pdb(ATOMS), altloc="all", centre=False)
    np.testing.assert_allclose(every.occupancy[3:7], [0.4, 0.6, 0.4, 0.6])
    assert every.n_electrons == pytest.approx(structure.n_electrons)


def test_occupancies_and_b_factors_can_be_left_out(pdb) -> None:
    structure = open_structure(pdb(ATOMS), occupancies=False, b_factors=False)
    assert (structure.occupancy == 1).all()
    assert (structure.b_factor_A2 == 0).all()


def test_a_file_shifted_by_200_angstroms_is_centred_all_the_same(pdb) -> None:
    shifted = [atom(1, "N", "ALA", 1, (201, 202, 203), "N"), atom(2, "CA", "ALA", 1, (205, 202, 203), "C")]
    near = [atom(1, "N", "ALA", 1, (1, 2, 3), "N"), atom(2, "CA", "ALA", 1, (5, 2, 3), "C")]
    here, there = open_structure(pdb(near, "near.pdb")), open_structure(pdb(shifted, "shifted.pdb"))
    np.testing.assert_allclose(there.positions_A, here.positions_A, atol=1e-10)
    np.testing.assert_allclose(there.centre_A, 0, atol=1e-10)


def test_an_assembly_copies_the_chains_it_names(pdb) -> None:
    other = atom(50, "C", "ALA", 1, (0, 0, 50), "C", chain="B")
    path = pdb([BIOMT, *ATOMS, other])
    built = open_structure(path, centre=False)
    assert len(built) == 16
    np.testing.assert_allclose(built.positions_A[8], [40 - 1, -2, 3])
    assert set(built.labels.chain) == {"A", "A-2"}
    assert any("16 atoms" in remark for remark in built.remarks)
    assert len(open_structure(path, assembly=None)) == 9
    with pytest.raises(FileError, match="no assembly '7'; it has 1"):
        open_structure(path, assembly="7")


def test_an_operator_that_is_no_motion_is_refused(pdb) -> None:
    for damaged in ("-1.000000", "nan"):
        remark = BIOMT.replace("BIOMT1   2 -1.000000", f"BIOMT1   2 {damaged:>9}").replace(
            "BIOMT2   2  0.0", "BIOMT2   2  7.0"
        )
        with pytest.raises(FileError, match="operator of assembly '1' is not a rotation"):
            open_structure(pdb([remark, *ATOMS]))


def test_mmcif_gives_the_same_as_pdb(pdb, tmp_path: Path) -> None:
    source = pdb([BIOMT, *ATOMS])
    structure = gemmi.read_structure(str(source))
    structure.setup_entities()
    cif = tmp_path / "model.cif"
    structure.make_mmcif_document().write_file(str(cif))
    from_pdb, from_cif = open_structure(source), open_structure(cif)
    np.testing.assert_allclose(from_cif.positions_A, from_pdb.positions_A, atol=1e-6)
    np.testing.assert_allclose(from_cif.occupancy, from_pdb.occupancy)
    np.testing.assert_allclose(from_cif.b_factor_A2, from_pdb.b_factor_A2)
    assert elements(from_cif) == elements(from_pdb)
    assert (from_cif.labels.atom_name == from_pdb.labels.atom_name).all()


def test_a_file_is_recognised_by_content_under_any_name(pdb, tmp_path: Path) -> None:
    source = pdb(ATOMS)
    packed = tmp_path / "something.dat"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    np.testing.assert_array_equal(open_structure(packed).positions_A, open_structure(source).positions_A)


def test_missing_elements_are_read_from_the_atom_names(pdb) -> None:
    blank = [line[:76].rstrip() + "\n" for line in ATOMS]
    assert elements(open_structure(pdb(blank))) == elements(open_structure(pdb(ATOMS, "full.pdb")))


def test_one_model_is_taken(pdb) -> None:
    models = ["MODEL        1\n", *ATOMS[:2], "ENDMDL\n", "MODEL        2\n", *ATOMS[:3], "ENDMDL\n"]
    assert len(open_structure(pdb(models))) == 2
    assert len(open_structure(pdb(models), model=2)) == 3
    with pytest.raises(FileError, match="no model 3; its models are numbered 1 to 2"):
        open_structure(pdb(models), model=3)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"  \n\n", "is empty"),
        (b"\x00\xff\x13garbage" * 100, "neither a PDB nor an mmCIF"),
        (b"\x89HDF\r\n\x1a\n" + bytes(200), "neither a PDB nor an mmCIF"),
        (b"REMARK only words\nEND\n", "holds no atoms"),
        (b"data_x\n_cell.length_a 10\n", "holds no atoms"),
        (b"data_x\nloop_\n_atom_site.id\n_atom_site.Cartn_x\n1\n", "not a valid mmCIF"),
        (gzip.compress("".join(ATOMS).encode(), mtime=0)[:-20], "damaged"),
        (b"\x1f\x8b\x08\x00 not really", "damaged"),
        (ATOMS[0].encode()[:50] + b"\n", "line 1 has no valid coordinates"),
        (ATOMS[0].replace("   1.000", "     nan").encode(), "line 1 has no valid coordinates"),
        (ATOMS[0].replace("   1.000", "   1.0x0").encode(), "line 1 has no valid coordinates"),
        (ATOMS[0].replace("  1.00 20.00", " -1.00 20.00").encode(), "no valid occupancy, such as 'N' of MSE"),
        (ATOMS[0].replace("N\n", "Q\n").encode(), "1 atom is of no known element, such as 'N' of MSE 1"),
        (ATOMS[0].replace(" N\n", "FM\n").encode(), "no form factor is tabulated for 'Fm'"),
        ("".join(ATOMS[-2:]).encode(), "no atoms left"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_named_with_its_reason(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.pdb"
    path.write_bytes(content)
    with pytest.raises(FileError) as caught:
        open_structure(path)
    assert str(path) in caught.value.message
    assert reason in caught.value.message


def test_a_cif_without_numbers_for_coordinates_is_refused(pdb, tmp_path: Path) -> None:
    cif = tmp_path / "model.cif"
    gemmi.read_structure(str(pdb(ATOMS))).make_mmcif_document().write_file(str(cif))
    text = cif.read_text()
    assert "2.5 " in text
    for wrong in ("? ", "2.x5 ", "1e99 "):
        cif.write_text(text.replace("2.5 ", wrong, 1))
        with pytest.raises(FileError, match="lacks valid coordinates, such as 'CA' of MSE 1"):
            open_structure(cif)


def test_missing_files_and_directories_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="does not exist"):
        open_structure(tmp_path / "nothing.pdb")
    with pytest.raises(FileError, match="is a directory"):
        open_structure(tmp_path)


def test_a_forbidden_file_is_named(pdb, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:  # the superuser may read every file, so the system is played here
        raise PermissionError(13, "Permission denied")

    path = pdb(ATOMS)
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(FileError, match="may not be read"):
        open_structure(path)


def test_a_format_is_recognised_without_reading_the_whole_file(pdb, tmp_path: Path) -> None:
    assert recognise_structure(pdb(ATOMS)) == "PDB"
    long = tmp_path / "long.gz"
    whole = gzip.compress("".join(["data_x\n_entry.id x\n", *(f"# {k}\n" for k in range(50_000))]).encode())
    long.write_bytes(whole[: len(whole) // 2])
    assert recognise_structure(long) == "mmCIF"
    (tmp_path / "other").write_text("photon_energy = 4600\np0/fs = x\n")
    with pytest.raises(FileError, match="neither"):
        recognise_structure(tmp_path / "other")


def test_damaged_files_give_a_structure_or_a_file_error_and_nothing_else(pdb, tmp_path: Path, rng) -> None:
    source = pdb([BIOMT, *ATOMS])
    cif = tmp_path / "model.cif"
    gemmi.read_structure(str(source)).make_mmcif_document().write_file(str(cif))
    n_refused = n_opened = 0
    for original in (source.read_bytes(), cif.read_bytes(), gzip.compress(source.read_bytes())):
        for _ in range(60):
            data = bytearray(original)
            for position in rng.integers(0, len(data), size=rng.integers(1, 6)):
                data[position] = rng.integers(0, 256)
            damaged = tmp_path / "damaged"
            damaged.write_bytes(data[: rng.integers(1, len(data) + 1)] if rng.random() < 0.5 else data)
            try:
                structure = open_structure(damaged)
            except FileError as error:
                n_refused += error.path == str(damaged)
            else:
                n_opened += np.isfinite(structure.positions_A).all()
    assert n_refused + n_opened == 3 * 60
    assert n_refused > 60


def test_the_chaperonin_opens_whole(chaperonins: tuple[Path, Path]) -> None:
    structure = open_structure(chaperonins[0])
    assert len(structure) == 58_624
    np.testing.assert_allclose(structure.centre_A, 0, atol=1e-9)
