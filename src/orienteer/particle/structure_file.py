"""Reading a PDB or mmCIF file, plain or gzipped, recognised by its content."""

import gzip
import math
import os
import re
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

from orienteer.errors import FileError

_LARGEST_BYTES = 2**31  # of text; the largest entries of the Protein Data Bank are a fifth of this
_HINT = "Give a PDB or mmCIF file of atoms, plain or gzipped."
_PDB_RECORD = re.compile(
    rb"^(ATOM  |HETATM|HEADER|TITLE |REMARK|CRYST1|MODEL |SEQRES|COMPND|EXPDTA|OBSLTE)", re.MULTILINE
)
_CIF_BLOCK = re.compile(rb"\A(?:\s|#[^\n]*\n)*data_", re.IGNORECASE)
# Bytes beyond ASCII would shift the columns of a PDB line once they are decoded.
_ASCII = bytes(value if value < 128 else ord("?") for value in range(256))


def read_structure_file(path: str | os.PathLike[str]) -> Any:
    """The file as a ``gemmi.Structure`` with at least one atom, all at finite places; else a FileError."""
    text = _read_text(Path(path)).translate(_ASCII)
    if _CIF_BLOCK.match(text):
        structure = _parse_cif(path, text)
    elif _PDB_RECORD.search(text):
        structure = _parse_pdb(path, text)
    else:
        raise FileError(path, "is neither a PDB nor an mmCIF file.", _HINT)
    if len(structure) == 0 or structure[0].count_atom_sites() == 0:
        raise FileError(path, "holds no atoms.", _HINT)
    return structure


def _read_text(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise FileError(path, "is a directory, not a structure file.", _HINT)
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise FileError(path, "does not exist.", "Check the path.") from error
    except OSError as error:
        raise FileError(path, f"cannot be read ({error.strerror}).", "Check its permissions.") from error
    if data[:2] == b"\x1f\x8b":
        try:
            with gzip.open(BytesIO(data)) as unpacked:
                data = unpacked.read(_LARGEST_BYTES + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise FileError(path, f"is a damaged gzip file ({error}).", "Fetch it again.") from error
    if len(data) > _LARGEST_BYTES:
        raise FileError(path, f"holds more than {_LARGEST_BYTES // 2**30} GiB of text.", _HINT)
    if not data.strip():
        raise FileError(path, "is empty.", _HINT)
    return data


def _parse_pdb(path: str | os.PathLike[str], text: bytes) -> Any:
    import gemmi

    _check_pdb_columns(path, text)
    try:
        return gemmi.read_pdb_string(text)
    except Exception as error:  # gemmi raises several kinds, all of which say what is wrong with the text
        raise FileError(path, f"is not a valid PDB file ({_one_line(error)}).") from error


def _check_pdb_columns(path: str | os.PathLike[str], text: bytes) -> None:
    """Refuse atoms whose numbers cannot be read: gemmi would take the readable part, or zero."""
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.startswith((b"ATOM  ", b"HETATM")):
            continue
        # The last digit of z stands in column 54: a shorter line has been cut.
        fields = [line[30:38], line[38:46], line[46:54] if len(line) >= 54 else b""]
        fields += [field for field in (line[54:60], line[60:66]) if field.strip()]
        try:
            valid = all(math.isfinite(float(field)) for field in fields)
        except ValueError:
            valid = False
        if not valid:
            shown = line[30:66].decode("ascii", "replace").strip()
            raise FileError(
                path, f"line {number} has no valid coordinates, occupancy and B factor: '{shown}'."
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
    except Exception as error:  # as above
        raise FileError(path, f"is not a valid mmCIF file ({_one_line(error)}).") from error
    return structure


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
