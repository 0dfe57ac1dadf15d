"""Labels of atoms: chain, residue and atom name, as in a structure file."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class AtomLabels:
    """The labels of N atoms in columns, as in a structure file."""

    chain: NDArray[np.str_]
    residue_number: NDArray[np.int64]
    insertion_code: NDArray[np.str_]
    residue_name: NDArray[np.str_]
    atom_name: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.chain)

    def __getitem__(self, chosen: NDArray[np.bool_] | NDArray[np.int64] | slice) -> "AtomLabels":
        return AtomLabels(
            self.chain[chosen],
            self.residue_number[chosen],
            self.insertion_code[chosen],
            self.residue_name[chosen],
            self.atom_name[chosen],
        )


def join_labels(first: AtomLabels | None, second: AtomLabels | None) -> AtomLabels | None:
    """Labels of both, first then second; None if either is None."""
    if first is None or second is None:
        return None
    return AtomLabels(
        np.concatenate([first.chain, second.chain]),
        np.concatenate([first.residue_number, second.residue_number]),
        np.concatenate([first.insertion_code, second.insertion_code]),
        np.concatenate([first.residue_name, second.residue_name]),
        np.concatenate([first.atom_name, second.atom_name]),
    )
