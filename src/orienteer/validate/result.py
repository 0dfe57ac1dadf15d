"""Validation: how good a result is, judged by its data alone: a sentence, its numbers, the files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import orienteer
from orienteer.compute.atomic import unwritable
from orienteer.compute.plain_json import plain, read_described, write_json
from orienteer.phase.doubt import is_doubt
from orienteer.reconstruction.course.course import is_trouble
from orienteer.run.files import VALIDATION
from orienteer.run.files import VALIDATION_DESCRIPTION as DESCRIPTION
from orienteer.validate.coverage import Coverage
from orienteer.validate.density_agreement import DensityAgreement, words_of_density
from orienteer.validate.half_maps import MAP_FILES, NO_MAPS, HalfMaps
from orienteer.validate.identity import outdated
from orienteer.validate.intensities import IntensityAgreement
from orienteer.validate.remarks import (
    COARSER,
    words_of_coverage,
    words_of_few_speckles,
    words_of_phasing,
)
from orienteer.validate.sentinel_poses import PoseAgreement
from orienteer.validate.states import StateAgreement
from orienteer.volume.opening import write_volume

FORMAT, VERSION = "orienteer-validation", 1
CRITERION = "0.143"
# Words of the remark if known orientations were given to both halves.
KNOWN_ORIENTATIONS = "known orientations"
# If poses differ by more than this share of the angle between random poses, they were not found.
_NOT_FOUND = 0.5


@dataclass(frozen=True)
class HalfSummary:
    """One of the two runs.

    path : its folder, below that of the validation.
    seed, phase_seed : of its random start, and of the random starts of its phasing.
    symmetry : of its density: given, or found by this half in its own frames.
    phases_repeat_to_A : resolution to which its phases repeat from start to start; None if not known.
    phasing_remarks : remarks of its phasing.
    """

    path: str
    seed: int
    phase_seed: int
    frames: int
    iterations: int
    reason: str
    diameter_A: float
    symmetry: str = "C1"
    phases_repeat_to_A: float | None = None
    phasing_remarks: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class VoxelErrors:
    """Errors of voxels by shell, found by merging groups of frames separately.

    replicates, seed : the number of groups, and the seed by which frames are assigned to them.
    relative_error : (S,) error of a typical voxel over the mean intensity of its shell.
    """

    replicates: int
    seed: int
    q_inv_A: NDArray[np.float64]
    relative_error: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Validation:
    """How far two independent halves of the data agree, and what else the data show about the result.

    run_id, iteration : of the run, when it was validated.
    halves : the two runs.
    maps : their densities and Fourier shell correlation; None if one of them could not be phased.
    intensity : agreement of their intensities, before any phasing.
    whole : agreement of the intensity of the run with that of a half, the half that agrees less.
    density : agreement of the density of the run with that of a half, the half that agrees better; None if
        the run has none of this intensity.
    sentinels : agreement about the poses of frames that neither has seen; None if there are none.
    coverage : directions with data at the resolution of the claim.
    errors : of the voxels of all frames merged at their poses; None if not asked for.
    states : results for each state, if there are several; ``maps``, ``intensity``, ``whole``, ``density``,
        coverage and errors are then those of the first.  Poses are compared in the first state that both
        halves have.
    given : what was given to both halves beforehand, such as the symmetry, in words.
    troubles : what could not be done, in sentences.
    belongs_to : checksums of the ``intensity`` and the ``density`` of the run that was validated, and of the
        densities of further states.
    """

    run_id: str
    iteration: int
    halves: tuple[HalfSummary, HalfSummary]
    maps: HalfMaps | None
    intensity: IntensityAgreement
    whole: IntensityAgreement
    density: DensityAgreement | None = None
    sentinels: PoseAgreement | None = None
    coverage: Coverage | None = None
    errors: VoxelErrors | None = None
    states: tuple[StateAgreement, ...] = ()
    given: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()
    belongs_to: Mapping[str, str | None] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    device: str = "cpu"

    def __repr__(self) -> str:
        return f"<Validation: {self.statement}>"

    def show(self, title: str = "") -> Any:
        """The picture of how far the two halves agree."""
        return orienteer.show(self, title)  # plot/ is downstream, so it cannot be imported here

    @property
    def resolution_A(self) -> float | None:
        """The resolution that may be claimed, a full period; None: none.

        To there both the densities (Fourier shell correlation, corrected for the mask) and the intensities
        (relative to their radial mean) agree.  Densities alone would not suffice: the radial mean of noise is
        the same in both halves, so densities phased from noise are similar.
        """
        densities_A, speckles_A = self.densities_agree_to_A, self.speckles_agree_to_A
        return None if densities_A is None or speckles_A is None else max(densities_A, speckles_A)

    @property
    def densities_agree_to_A(self) -> float | None:
        """Resolution to which the Fourier shell correlation of densities is above 0.143; None: nowhere."""
        return None if self.maps is None else self.maps.resolutions[CRITERION].resolution_A

    @property
    def exceeds_claim(self) -> bool:
        """Whether the densities agree clearly beyond the claim, where the intensities show no structure."""
        return is_beyond(self.resolution_A, self.densities_agree_to_A)

    @property
    def reaches_edge(self) -> bool:
        """Whether the halves agree up to the edge of the data."""
        at_edge = self.maps is not None and self.maps.resolutions[CRITERION].reaches_edge
        found, densities_A = self.resolution_A, self.densities_agree_to_A
        return at_edge and found is not None and found <= COARSER * (densities_A or 0.0)

    @property
    def too_few_speckles(self) -> bool:
        """Whether the intensities are alike as far as the densities are, but chance might do the same.

        A symmetric particle of few speckles has too few independent numbers for a claim; this does not mean
        that its halves share nothing but the radial mean.
        """
        densities_A, alike_A = self.densities_agree_to_A, self.intensity.resolution_A
        if densities_A is None or alike_A is None or self.speckles_agree_to_A is not None:
            return False
        return alike_A <= COARSER * densities_A

    @property
    def doubts(self) -> list[str]:
        """Sentences about densities of the run for which the claim about its halves does not hold."""
        if self.states:
            return [state.doubt for state in self.states if state.doubt]
        said = words_of_density(self.density, self.maps, self.resolution_A, self.whole_agrees_to_A)
        return [said] if said else []

    @property
    def statement(self) -> str:
        """The claim, and for which densities of the run it does not hold."""
        return " ".join([self.claim, *self.doubts])

    @property
    def claim(self) -> str:
        """What may be claimed about the halves, in one sentence."""
        sizes = " and ".join(f"{half.frames:,}" for half in self.halves)
        # Halves are not independent if known orientations were given to both.
        what = "halves with known orientations" if KNOWN_ORIENTATIONS in self.given else "independent halves"
        who = f"Two {what} of {sizes} frames"
        if self.states:
            each = ", ".join(state.words for state in self.states)
            n, n_found = len(self.states), sum(state.is_found for state in self.states)
            count = f"{n} states" if n_found == n else f"{n_found or 'none'} of {n} states"
            return f"{who} agree on {count} by themselves: {each} (FSC {CRITERION})."
        found, densities_A, whole_A = self.resolution_A, self.densities_agree_to_A, self.whole_agrees_to_A
        if self.too_few_speckles:
            return (
                f"{who} agree to {densities_A:.3g} A, but on too few speckles to tell structure from chance."
            )
        if found is None and densities_A is not None:
            return f"{who} agree in their radial mean only, and show no structure to any resolution."
        if found is None:
            return f"{who} agree on nothing: these data show no structure to any resolution."
        where = f"up to the edge of the data, {found:.3g} A" if self.reaches_edge else f"to {found:.3g} A"
        # If densities agree up to the edge, no phases beyond remain to be randomised for the correction.
        is_corrected = self.maps is not None and self.maps.curves.random_from_inv_A is not None
        mask = "corrected for the mask" if is_corrected else "under a soft mask"
        said = f"{who} agree {where} (FSC {CRITERION}, {mask}"
        if self.exceeds_claim:
            said += f"; beyond, to {densities_A:.3g} A, they do so in their radial mean only"
        if whole_A is None:
            return f"{said}), but the run of all frames has found something else."
        if whole_A > COARSER * found:
            return f"{said}), but the run of all frames agrees with them only to {whole_A:.3g} A."
        return f"{said})."

    @property
    def speckles_agree_to_A(self) -> float | None:
        """Resolution to which the intensities agree about more than their radial mean; None: nowhere."""
        return self.intensity.agrees_to_A

    @property
    def whole_agrees_to_A(self) -> float | None:
        """Resolution to which the run of all frames shows the speckles of the halves; None: nowhere."""
        return self.whole.agrees_to_A

    @property
    def density_agrees_to_A(self) -> float | None:
        """Resolution to which the density of the run is that of its halves; None: nowhere or not compared."""
        return None if self.density is None else self.density.agrees_to_A

    @property
    def remarks(self) -> list[str]:
        """What a reader must know about the claim, in sentences."""
        told = list(self.troubles)
        if not self.states and self.resolution_A is not None and self.whole_agrees_to_A is None:
            told.append(
                "The run of all frames does not show what its halves agree on: do not trust its maps. "
                "Reconstruct it again, with another --seed or with more --starts."
            )
        if self.given:
            what = " and ".join(self.given)
            told.append(f"Both halves were given {what}; what follows from that alone is no evidence.")
        poses = self.sentinels
        if poses is not None and poses.median_deg > _NOT_FOUND * poses.chance_deg:
            told.append(
                f"The halves do not agree on the poses of frames that neither has seen: they differ by "
                f"{poses.median_deg:.3g} degrees, and random poses by {poses.chance_deg:.3g}."
            )
        if poses is not None and poses.n_alike > 1:
            told.append(
                f"The particle looks the same at {poses.n_alike} rotations, which count as one pose; if that "
                "is a symmetry, give it: reconstruct --symmetry."
            )
        if self.maps is not None:
            told += words_of_phasing(self.densities_agree_to_A, self.speckles_agree_to_A)
        if self.too_few_speckles:
            told.append(words_of_few_speckles(self.intensity.order))
        if self.coverage is not None:
            told += words_of_coverage(self.coverage)
        for half in self.halves:
            repeat_A, claim_A = half.phases_repeat_to_A, self.resolution_A
            if repeat_A is not None and claim_A is not None and repeat_A > COARSER * claim_A:
                told.append(f"The phases of {half.path} repeat from start to start only to {repeat_A:.3g} A.")
            told += [f"{half.path}: {remark}" for remark in half.phasing_remarks if is_doubt(remark)]
            if is_trouble(half.reason):
                told.append(f"{half.path} ended: {half.reason}")
        return [*told, *(self.maps.alignment.remarks if self.maps is not None else ())]

    def describe(self) -> dict[str, Any]:
        """The content of ``validation.json``: everything except the volumes."""
        coverage, intensity = self.coverage, self.intensity
        described = {
            "format": FORMAT,
            "version": VERSION,
            "creator": f"orienteer {orienteer.__version__}",
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "run_id": self.run_id,
            "iteration": self.iteration,
            "statement": self.statement,
            "claim": self.claim,
            "doubts": self.doubts,
            "remarks": self.remarks,
            "belongs_to": self.belongs_to,
            "resolution_A": self.resolution_A,
            "densities_A": self.densities_agree_to_A,
            "speckles_A": self.speckles_agree_to_A,
            "too_few_speckles": self.too_few_speckles,
            "criterion": CRITERION,
            "reaches_edge": self.reaches_edge,
            **(NO_MAPS if self.maps is None else self.maps.describe()),
            "halves": self.halves,
            "intensity": {
                **plain(intensity),
                "resolution_A": intensity.resolution_A,
                "agrees_to_A": self.speckles_agree_to_A,
            },
            "whole": {
                **plain(self.whole),
                "resolution_A": self.whole.resolution_A,
                "agrees_to_A": self.whole_agrees_to_A,
            },
            "density": None
            if self.density is None
            else {
                **self.density.describe(),
                "verdict": self.density.verdict(self.maps, self.resolution_A, self.whole_agrees_to_A),
            },
            "states": [state.describe() for state in self.states],
            "sentinels": self.sentinels,
            "coverage": None
            if coverage is None
            else {
                "q_inv_A": coverage.q_inv_A,
                "cell_deg": coverage.cell_deg,
                "empty_share": coverage.empty_share,
                "worst_density": coverage.worst_density,
                "worst_direction": coverage.worst_direction,
                "largest_gap_deg": coverage.largest_gap_deg,
                "frames": coverage.n_frames,
            },
            "bootstrap": self.errors,
            "settings": self.settings,
            "seed": self.seed,
            "device": self.device,
        }
        return dict(plain(described))

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write the half maps, the mask and, last, validation.json; each file whole or not at all.

        The files of an earlier validation are removed first, so that an interruption cannot mix the two.
        """
        place = Path(folder)
        path = place / DESCRIPTION
        try:
            place.mkdir(parents=True, exist_ok=True)
            for name in (DESCRIPTION, *MAP_FILES):
                (place / name).unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(place, error) from error
        volumes = {} if self.maps is None else self.maps.volumes()
        for state in self.states[1:]:
            for name, volume in ({} if state.maps is None else state.maps.volumes()).items():
                volumes[f"state_{state.state}/{name}"] = volume
        for name, volume in volumes.items():
            try:
                (place / name).parent.mkdir(exist_ok=True)
            except OSError as error:
                raise unwritable(place, error) from error
            write_volume(place / name, volume)
        write_json(path, self.describe())
        return [*(place / name for name in volumes), path]


def is_beyond(claim_A: float | None, resolution_A: float | None) -> bool:
    """Whether a resolution is clearly finer than a claim: up to there only the radial mean agrees."""
    return claim_A is not None and resolution_A is not None and claim_A > COARSER * resolution_A


def read_validation(run: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The content of ``validation.json`` of a run; None if the run was not validated.

    If the run has changed since, the statement is the claim after a sentence about that, and what was found
    about the densities of the run is left out.
    """
    path = Path(run) / VALIDATION / DESCRIPTION
    if not path.exists():
        return None
    told = read_described(path, "validation", FORMAT, VERSION)
    belongs_to = told.get("belongs_to")
    why = outdated(belongs_to, Path(run)) if isinstance(belongs_to, Mapping) else ""
    if not why:
        return told
    claim = told.get("claim", told.get("statement", ""))  # the first files hold the statement alone
    states = told.get("states")
    if isinstance(states, list):
        states = [{**one, "density_A": None} if isinstance(one, Mapping) else one for one in states]
    return {
        **told, "statement": f"{why} It said: {claim}", "density": None, "doubts": [], "states": states,
    }  # fmt: skip
