"""Read a PDB or mmCIF file, plain or gzipped, recognised by its content."""

import math
import os
import re
from pathlib import Path
from typing import Any, Literal

from orienteer.compute.reading import one_line, open_unpacked, read_at_most, reading
from orienteer.errors import FileError

_LARGEST_BYTES = 2**31  # of text; five times the largest entries of the Protein Data Bank
_OPENING_BYTES = 2**16  # enough to recognise a file
_HINT = "Give a PDB or mmCIF file of atoms, plain or gzipped."
_PDB_RECORD = re.compile(
    rb"^(ATOM  |HETATM|HEADER|TITLE |REMARK|CRYST1|MODEL |SEQRES|COMPND|EXPDTA|OBSLTE)", re.MULTILINE
)
_CIF_BLOCK = re.compile(rb"\A(?:\s|#[^\n]*\n)*data_", re.IGNORECASE)
# Decoding several bytes beyond ASCII into one character would shift the columns of a PDB line.
_ASCII = bytes(value if value < 128 else ord("?") for value in range(256))


def read_structure_file(path: str | os.PathLike[str]) -> Any:
    """The file as a ``gemmi.Structure``; a FileError if it is damaged or holds no atoms."""
    text = _read_text(Path(path), _LARGEST_BYTES).translate(_ASCII)
    if len(text) > _LARGEST_BYTES:
        raise FileError(path, f"holds more than {_LARGEST_BYTES // 2**30} GiB of text.", _HINT)
    structure = _parse_cif(path, text) if _format_of(path, text) == "mmCIF" else _parse_pdb(path, text)
    if len(structure) == 0 or structure[0].count_atom_sites() == 0:
        raise FileError(path, "holds no atoms.", _HINT)
    return structure


def recognise_structure(path: str | os.PathLike[str]) -> Literal["PDB", "mmCIF"]:
    """The format of a structure file, from its first lines; a FileError if it is not a structure file."""
    return _format_of(path, _read_text(Path(path), _OPENING_BYTES))


def _format_of(path: str | os.PathLike[str], text: bytes) -> Literal["PDB", "mmCIF"]:
    if _CIF_BLOCK.match(text):
        return "mmCIF"
    if _PDB_RECORD.search(text):
        return "PDB"
    raise FileError(path, "is neither a PDB nor an mmCIF file.", _HINT)


def _read_text(path: Path, n_bytes: int) -> bytes:
    """The text of the file, unpacked; at most one byte more than ``n_bytes``."""
    with reading(path, "structure file") as file, open_unpacked(file) as unpacked:
        data = read_at_most(unpacked, n_bytes + 1)
    if not data.strip():
        raise FileError(path, "is empty.", _HINT)
    return data


def _parse_pdb(path: str | os.PathLike[str], text: bytes) -> Any:
    import gemmi

    _check_pdb_columns(path, text)
    try:
        return gemmi.read_pdb_string(text)
    except Exception as error:  # gemmi raises several kinds; each message says what is wrong with the text
        raise FileError(
            path, f"is not a valid PDB file ({one_line(error)}).", "Download it again, or give it as mmCIF."
        ) from error


def _check_pdb_columns(path: str | os.PathLike[str], text: bytes) -> None:
    """Raise an error for atoms with unreadable numbers: gemmi would use the readable part, or zero."""
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.startswith((b"ATOM  ", b"HETATM")):
            continue
        # The last digit of z is in column 54, so a shorter line has been cut off.
        fields = [line[30:38], line[38:46], line[46:54] if len(line) >= 54 else b""]
        fields += [field for field in (line[54:60], line[60:66]) if field.strip()]
        try:
            valid = all(math.isfinite(float(field)) for field in fields)
        except ValueError:
            valid = False
        if not valid:
            shown = line[30:66].decode("ascii", "replace").strip()
            raise FileError(
                path,
                f"line {number} has no valid coordinates, occupancy and B factor: '{shown}'.",
                "Correct the line, or download the file again.",
            )


def _parse_cif(path: str | os.PathLike[str], text: bytes) -> Any:
    import gemmi

    try:
        document = gemmi.cif.read_string(text)
        blocks = [
            block
            for block in document
            if block.find_loop("_atom_site.Cartn_x") or block.find_value("_atom_site.id")
        ]
        structure = gemmi.make_structure_from_block(blocks[0] if blocks else document[0])
    except Exception as error:  # as for PDB files
        raise FileError(
            path, f"is not a valid mmCIF file ({one_line(error)}).", "Download it again, or give it as PDB."
        ) from error
    return structure
