"""Write a detector to a file of any known format, chosen by name or by the ending of the file name."""

import os
from pathlib import Path

from orienteer.detector.beam import wavelength_from_energy_A
from orienteer.detector.detector import Detector, Polarisation
from orienteer.detector.opening import Form
from orienteer.errors import FileError, OrienteerError

# The first format that lists an ending is the one that the ending selects.
ENDINGS: dict[Form, tuple[str, ...]] = {
    "Orienteer": (".h5", ".hdf5"),
    "CrystFEL": (".geom",),
    "Dragonfly text": (".dat",),
    "Dragonfly HDF5": (),
    "SpiniFEL": (),
}


def write_detector_file(
    path: str | os.PathLike[str],
    detector: Detector,
    form: str | None = None,
    wavelength_A: float | None = None,
    polarisation: Polarisation = "x",
) -> Form:
    """Write the detector, whole or not at all; returns the name of the format.

    form : one of the names in ``ENDINGS``, in any case; by default the ending of the path decides.
    wavelength_A : needed for SpiniFEL, and written as photon energy into a ``.geom`` file.
    polarisation : of the beam, for the Dragonfly and SpiniFEL formats, which store corrections.
    """
    path = Path(path)
    chosen = _choose(path, form)
    if chosen == "CrystFEL":
        from orienteer.detector.crystfel_write import write_crystfel_geom

        energy_eV = None if wavelength_A is None else wavelength_from_energy_A(wavelength_A)
        write_crystfel_geom(path, detector, photon_energy_eV=energy_eV)
    elif chosen == "Dragonfly text":
        from orienteer.detector.dragonfly import write_dragonfly_text

        write_dragonfly_text(path, detector, polarisation)
    elif chosen == "Dragonfly HDF5":
        from orienteer.detector.dragonfly import write_dragonfly_hdf5

        write_dragonfly_hdf5(path, detector, polarisation)
    elif chosen == "SpiniFEL":
        _write_spinifel(path, detector, wavelength_A, polarisation)
    else:
        from orienteer.detector.hdf5 import store_detector

        store_detector(path, detector)
    return chosen


def _write_spinifel(
    path: Path, detector: Detector, wavelength_A: float | None, polarisation: Polarisation
) -> None:
    from orienteer.compute.hdf5_writing import new_hdf5
    from orienteer.detector.spinifel import write_spinifel_group

    if wavelength_A is None:
        raise FileError(
            path, "a SpiniFEL file holds scattering vectors, so it needs the wavelength.", "Give it in A."
        )
    with new_hdf5(path, libver="latest") as file:
        write_spinifel_group(file, detector, wavelength_A, polarisation)


def _choose(path: Path, form: str | None) -> Form:
    known = "; ".join(f"{name} ({', '.join(endings) or 'by name'})" for name, endings in ENDINGS.items())
    for name, endings in ENDINGS.items():
        if (form is None and path.suffix.lower() in endings) or (
            form is not None and form.lower() == name.lower()
        ):
            return name
    if form is not None:
        raise OrienteerError(f"a detector cannot be written as '{form}'.", f"Known formats: {known}.")
    raise FileError(path, "has an ending of no known detector format.", f"Known formats: {known}.")
