"""The intensity to be phased: that of a run, or of a volume file in any known format."""

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from orienteer.compute.arrays import to_numpy
from orienteer.compute.words import counted
from orienteer.errors import FileError, OrienteerError
from orienteer.phase.settings import PhaseSettings
from orienteer.run.directory import RunDirectory
from orienteer.run.states import missing_models_in_words
from orienteer.volume.checksum import checksum
from orienteer.volume.unit_mistakes import unit_mistake
from orienteer.volume.volume import Volume

# Two diameters within this factor may be given for the same particle.
_SAME_SIZE = 1.2
# Sizes of voxels with a smaller relative difference are the same.
_SAME_VOXEL = 1e-3


@dataclass(frozen=True, eq=False)
class Intensity:
    """An intensity, and where it comes from.

    volume : in reciprocal space, NaN where nothing was measured.
    origin : path, model, checksum; for a run also its ``run_id`` and ``iteration``.
    seed : of the run; 0 for a file.
    symmetry : of its density, as given to the run or found by it; C1 for a file.
    diameter_A : of the particle, as given to the run; 0 if not given.
    remarks : what was noticed, in sentences.
    """

    volume: Volume
    origin: dict[str, Any]
    seed: int = 0
    symmetry: str = "C1"
    diameter_A: float = 0.0
    remarks: tuple[str, ...] = ()

    def contradictions(self, settings: PhaseSettings) -> tuple[str, ...]:
        """Settings of the phasing that contradict those of the run, in sentences."""
        said = []
        if self.symmetry != settings.symmetry and "run_id" in self.origin:
            how = f"with the symmetry {self.symmetry}, but phasing uses {settings.symmetry}"
            said.append(f"The run was made {how}.")
        ours, theirs = settings.diameter_A, self.diameter_A
        if ours and theirs and not 1 / _SAME_SIZE <= ours / theirs <= _SAME_SIZE:
            said.append(
                f"The run was made with a diameter of {theirs:g} A, but phasing uses {ours:g} A. "
                f"{unit_mistake(ours, theirs)}".strip()
            )
        return tuple(said)


def open_intensity(path: Path, model: int = 1, voxel_inv_A: float | None = None) -> Intensity:
    """Open the intensity of a run or a volume file.

    model : which one, if the run or file holds several; counted from 1.
    voxel_inv_A : size of a voxel, if the file does not give it or gives it wrong.
    """
    if path.is_dir():
        if voxel_inv_A is not None:
            raise FileError(path, "is a run and knows how large its voxels are.", "Leave out the voxel size.")
        return _of_run(path, model)
    from orienteer.volume.opening import open_volumes

    with warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always")
        volumes = open_volumes(path, voxel_inv_A, None if voxel_inv_A is None else "reciprocal")
    found = _checked(volumes, model, path, {})
    other = _other_voxel_size(path, found.volume)
    return replace(found, remarks=(*(str(one.message) for one in noticed), *other, *found.remarks))


def _other_voxel_size(path: Path, volume: Volume) -> tuple[str, ...]:
    """A sentence if the file gives another size of its voxels than the user."""
    from orienteer.volume.opening import open_volumes

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            own = open_volumes(path)[0].voxel_size[0]
    except OrienteerError:  # the file gives no size
        return ()
    given = volume.voxel_size[0]
    if abs(own - given) <= _SAME_VOXEL * given:
        return ()
    return (f"The file says that its voxels are {own:.4g} 1/A; the {given:.4g} 1/A that was given is used.",)


def _of_run(path: Path, model: int) -> Intensity:
    from orienteer.run.measured_intensity import measured_intensity
    from orienteer.run.run import Run

    run = Run.open(path)
    remarks: tuple[str, ...] = (
        () if run.finished else ("The run has not finished; this is its last intensity.",)
    )
    facts = {"run_id": run.described["run_id"], "iteration": run.iteration}
    missing = missing_models_in_words(dict(run.settings), run.events)
    found = _checked(run.volumes(), model, RunDirectory(path).intensity, facts, missing)
    known = measured_intensity(run, model - 1)
    if known.n_missing > found.volume.n_missing:
        if np.isnan(to_numpy(known.values)[known.centre_index]):
            remarks += ("The pixels do not reach the centre; phasing leaves the intensity there free.",)
        found = replace(found, volume=known)
    return replace(
        found,
        seed=run.seed,
        symmetry=run.density_group.name,
        diameter_A=float(getattr(run.settings, "diameter_A", 0.0)),
        remarks=(*remarks, *found.remarks),
    )


def _checked(
    volumes: tuple[Volume, ...], model: int, path: Path, facts: dict[str, Any], missing: str = ""
) -> Intensity:
    """One of the intensities, NaN where nothing was measured.

    missing : why there are fewer models than were asked for; used as the hint.
    """
    if not 1 <= model <= len(volumes):
        raise FileError(
            path,
            f"holds {len(volumes)} model{'s' * (len(volumes) > 1)}; model {model} was asked for.",
            missing or "They count from 1.",
        )
    volume = volumes[model - 1]
    if volume.space == "real":
        raise FileError(
            path,
            "is a volume in real space, but phasing needs an intensity.",
            "If it is an intensity after all, give the size of its voxels with --voxel-inv-A.",
        )
    values = to_numpy(volume.values)
    origin = {"path": str(path), "model": model, **facts, "checksum": checksum(volume)}
    n_zero = int((values == 0).sum())
    if n_zero and n_zero == values.size - volume.n_missing:
        raise FileError(
            path,
            "the intensity is zero everywhere: there is nothing to phase.",
            "Give another file or model; orienteer inspect shows what is in it.",
        )
    if volume.n_missing or n_zero == 0:
        return Intensity(volume, origin)
    # Raw cubes and MRC maps can mark voxels without data only by 0, and measured intensities are above 0.
    known = volume.with_values(np.where(values == 0, np.float32(np.nan), values))
    n_voxels = counted(
        n_zero, "voxel of the intensity is 0 and was", "voxels of the intensity are 0 and were"
    )
    words = f"{n_voxels} taken as never measured."
    return Intensity(known, origin, remarks=(words,))
