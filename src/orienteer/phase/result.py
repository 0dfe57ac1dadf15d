"""Phasing: the density of a particle, everything that shows how far to trust it, and its files."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import orienteer
from orienteer.compute.arrays import to_numpy
from orienteer.compute.atomic import unwritable
from orienteer.compute.plain_json import plain, read_described, write_json
from orienteer.compute.reading import reading
from orienteer.compute.words import counted
from orienteer.phase.doubt import UNSEEN_AMPLITUDES
from orienteer.phase.ensemble import Cluster, Clusters
from orienteer.phase.files import DENSITY_H5, DENSITY_MRC, DESCRIPTION, SUPPORT
from orienteer.phase.prtf import Prtf
from orienteer.phase.r_factor import RFactor
from orienteer.phase.scale import Scale
from orienteer.phase.weak_modes import WeakModes
from orienteer.volume.opening import open_volume, write_volume
from orienteer.volume.volume import Volume

FORMAT, VERSION = "orienteer-phasing", 2
# With more starts than this, the agreements of all pairs are not saved: they would take megabytes.
MOST_STARTS_IN_PAIRS = 200
# A density does not fit if its error in held-out amplitudes is above both: a share of the amplitudes, and a
# multiple of the error of the data.
WRONG, WRONG_IN_ERRORS = 0.25, 2.0
# A density knows nothing of the speckles if its error is above this share of that of the shells' means.
KNOWS_NOTHING = 0.9
# A density that agrees better than this with its own inverse has no hand.
BOTH_HANDS = 0.95


@dataclass(frozen=True, eq=False, repr=False)
class Phasing:
    """The density that the best cluster of starts agrees on.

    density : in real space, the particle in the middle of the box; its unit is that of ``scale``.
    support : 1 where the density may differ from 0, else 0, on the same grid.
    clusters : which starts agree, how well, and the free log-likelihood of each start.
    prtf : how well the phases of the averaged starts repeat.
    r_factor : of the density against the measured amplitudes.
    weak_modes : what unmeasured voxels leave open.
    scale : the unit, and what it rests on.
    background : flat intensity that was subtracted, in the unit of the intensity.
    particle_volume_A3 : volume that the density fills (``orienteer.phase.filled``).
    judged : log-likelihood of the held-out voxels that judge, the mean over the averaged starts.
    data_error : relative error of the measured amplitudes, in the geometric mean over shells.
    shell_error : relative error if every amplitude is replaced by the mean of its shell.
    other_hand : agreement of the density with its own inverse; 1 for one with a centre of symmetry.
    edge_A, diameter_A : resolution of the edge of the data, and the largest extent that was assumed.
    seed : of every random draw.
    settings : as they were used.
    origin : of the intensity: path, checksum and so on.
    further_remarks : remarks made before and during phasing.

    The hand of the density is not known: an intensity is the same for both.

    >>> import numpy as np
    >>> x = np.arange(-8, 8)
    >>> body = np.add.outer(np.add.outer(x**2, 2 * x**2), x**2 / 2) < 8  # an ellipsoid, 11 to 32 A across
    >>> transform = np.fft.fftshift(np.fft.fftn(np.fft.ifftshift(body)))
    >>> intensity = Volume(abs(transform) ** 2, voxel_size=1 / 64, space="reciprocal")
    >>> settings = orienteer.PhaseSettings(starts=2, schedule="20*dm 10*er", support_volume_A3=5000)
    >>> phasing = orienteer.phase_intensity(intensity, settings, seed=1)
    >>> phasing.clusters.n_starts, phasing.support.shape == phasing.density.shape
    (2, True)
    >>> phasing.show("ellipsoid").savefig("density.png")
    """

    density: Volume
    support: Volume
    clusters: Clusters
    prtf: Prtf
    r_factor: RFactor
    weak_modes: WeakModes
    scale: Scale
    background: float = 0.0
    particle_volume_A3: float = 0.0
    judged: float = 0.0
    data_error: float = 0.0
    shell_error: float = 0.0
    other_hand: float = 0.0
    edge_A: float | None = None
    diameter_A: float | None = None
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    origin: Mapping[str, Any] = field(default_factory=dict)
    further_remarks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        chosen = f"{len(self.clusters.clusters[0])} of {counted(self.clusters.n_starts, 'start')} agree"
        return f"<Phasing of {self.density.shape[0]} voxels along an edge: {chosen}, {self.prtf.in_brief()}>"

    @property
    def resolution_A(self) -> float | None:
        """Full period to which the phases repeat from start to start, which is no claim about the truth."""
        return self.prtf.resolution_A

    @property
    def unseen_error(self) -> float:
        """Approximate relative error of held-out amplitudes; for a random density about 0.5.

        The latter is hardly above ``shell_error``: only how a density varies within each shell is judged.
        The free log-likelihood per voxel is -log(error) - 1/2.
        """
        return math.exp(min(-self.judged - 0.5, 0.0))

    @property
    def support_volume_A3(self) -> float:
        """Volume of the support."""
        return float((to_numpy(self.support.values) > 0.5).sum() * np.prod(self.support.voxel_size))

    @property
    def remarks(self) -> list[str]:
        """What a user should know before believing the density, in sentences."""
        said = [*self.further_remarks, *self.clusters.remarks()]
        if self.prtf.n_starts > 1 and self.prtf.resolution_A is None:
            said.append(self.prtf.words())
        if 0 < self.shell_error * KNOWS_NOTHING < self.unseen_error:
            said.append(
                f"{UNSEEN_AMPLITUDES.capitalize()} are predicted no better than by the mean of each "
                "shell: the intensity is noise, or the density is wrong altogether."
            )
        elif self.unseen_error > max(WRONG, WRONG_IN_ERRORS * self.data_error):
            said.append(
                f"The density does not fit: {UNSEEN_AMPLITUDES} are off by "
                f"{self.unseen_error:.0%}, more than twice the error of the data. It may be wrong, however "
                "well its phases repeat; the usual reason is a wrong size or volume of the support."
            )
        if self.other_hand > BOTH_HANDS:
            said.append(
                "The density is the same in both hands: the particle has a centre of symmetry, or the starts "
                "have settled on a mixture of both hands."
            )
        if self.weak_modes.number:
            said.append(self.weak_modes.words())
        if not self.scale.is_absolute:
            said.append(
                "The scale of the density is arbitrary; the particle's electrons or its mass would fix it."
            )
        return said

    def show(self, title: str = "") -> Any:
        """The picture of the density, its curves and its starts."""
        return orienteer.show(self, title)  # through the top level: plot is downstream of phase

    def describe(self) -> dict[str, Any]:
        """Everything except the volumes, as written to ``phasing.json``."""
        keeps_pairs = self.clusters.n_starts <= MOST_STARTS_IN_PAIRS
        described = {
            "format": FORMAT,
            "version": VERSION,
            "creator": f"orienteer {orienteer.__version__}",
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "intensity": self.origin,
            "seed": self.seed,
            "settings": self.settings,
            "voxel_A": self.density.voxel_size[0],
            "voxels": self.density.shape[0],
            "edge_A": self.edge_A,
            "diameter_A": self.diameter_A,
            "support_volume_A3": self.support_volume_A3,
            "particle_volume_A3": self.particle_volume_A3,
            "unit": self.scale.unit,
            "scale": self.scale,
            "hand": "not known: both hands have the same intensity",
            "n_starts": self.clusters.n_starts,
            "n_averaged": len(self.clusters.clusters[0]),
            "share": self.clusters.share,
            "clusters": self.clusters.clusters,
            "agreement": np.round(self.clusters.agreement, 4) if keeps_pairs else None,
            "free_log_likelihood": self.clusters.scores,
            "judged_log_likelihood": self.judged,
            "unseen_error": self.unseen_error,
            "data_error": self.data_error,
            "shell_error": self.shell_error,
            "other_hand": self.other_hand,
            "resolution_A": self.resolution_A,
            "reaches_edge": self.prtf.reaches_the_edge,
            "prtf": {**plain(self.prtf), "floor": self.prtf.floor, "words": self.prtf.words()},
            "r_factor": self.r_factor,
            "background": self.background,
            "weak_modes": {
                "number": self.weak_modes.number,
                "share": self.weak_modes.share,
                "is_complete": self.weak_modes.is_complete,
                "n_unmeasured": self.weak_modes.n_unmeasured,
                "eigenvalues": self.weak_modes.eigenvalues,
                "words": self.weak_modes.words(),
            },
            "further_remarks": self.further_remarks,
            "remarks": self.remarks,
        }
        return dict(plain(described))

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write density.mrc, density.h5, support.mrc and, last, phasing.json; each file whole or not at all.

        Returns their paths.  A folder that does not exist is made.
        """
        place = Path(folder)
        try:
            place.mkdir(parents=True, exist_ok=True)
            # Remove the old description first: if saving is interrupted, it must not describe new maps.
            (place / DESCRIPTION).unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(place, error) from error
        paths = [place / name for name in (DENSITY_MRC, DENSITY_H5, SUPPORT, DESCRIPTION)]
        write_volume(paths[0], self.density)
        write_volume(paths[1], self.density)
        write_volume(paths[2], self.support)
        write_json(paths[3], self.describe())
        return paths

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> "Phasing":
        """Read what :meth:`save` wrote into a folder; weak modes themselves are not saved."""
        place = Path(folder)
        told = read_description(place)
        with reading(place / DESCRIPTION, "description of a phasing"):
            clusters = tuple(
                Cluster(
                    tuple(one["members"]),
                    tuple(_number(value) for value in one["agreement"]),
                    one["threshold"],
                    _number(one["score"]),
                )
                for one in told["clusters"]
            )
            n_starts = int(told["n_starts"])
            pairs = told["agreement"]
            agreement = _numbers(pairs) if pairs is not None else np.full((n_starts, n_starts), np.nan)
            curve, weak = told["prtf"], told["weak_modes"]
            wrong = told["r_factor"]
            return cls(
                density=open_volume(place / DENSITY_H5),
                support=open_volume(place / SUPPORT),
                clusters=Clusters(clusters, agreement, _numbers(told["free_log_likelihood"])),
                prtf=Prtf(
                    _numbers(curve["q_inv_A"]),
                    _numbers(curve["values"]),
                    np.array(curve["n_voxels"], np.int64),
                    int(curve["n_starts"]),
                ),
                r_factor=RFactor(wrong["overall"], _numbers(wrong["q_inv_A"]), _numbers(wrong["by_shell"])),
                weak_modes=WeakModes(
                    _numbers(weak["eigenvalues"]), weak["share"], weak["n_unmeasured"], weak["is_complete"]
                ),
                scale=Scale(**told["scale"]),
                background=told["background"],
                # Version 1 had one set of held-out voxels for choosing and judging, and no particle volume.
                particle_volume_A3=told.get("particle_volume_A3", 0.0),
                judged=_number(told.get("judged_log_likelihood", clusters[0].score)),
                data_error=told["data_error"],
                shell_error=told["shell_error"],
                other_hand=told["other_hand"],
                edge_A=told["edge_A"],
                diameter_A=told["diameter_A"],
                seed=told["seed"],
                settings=told["settings"],
                origin=told["intensity"],
                further_remarks=tuple(told["further_remarks"]),
            )


def read_description(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """The contents of ``phasing.json`` in a folder: everything except the volumes."""
    path = Path(folder) / DESCRIPTION
    return read_described(path, "phasing", FORMAT, VERSION)


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _numbers(values: Any) -> Any:
    """Nested lists as float64, NaN for null."""
    return np.array(values, dtype=np.float64)
