"""From a finished run to a claim: two independent halves are phased, aligned and compared.

No known structure is used: everything follows from the frames.  Each part is stored when it is done, so that
a validation that was stopped goes on where it was.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace

import numpy as np

from orienteer.compute.arrays import DeviceName, choose_device
from orienteer.errors import FileError, OrienteerError
from orienteer.orientation.point_group import PointGroup
from orienteer.orientation.quaternion import compose, inverse
from orienteer.phase.result import Phasing
from orienteer.phase.settings import PhaseSettings
from orienteer.reconstruction.frames.pixels import pixel_table
from orienteer.reconstruction.stopwatch import part
from orienteer.run.files import VALIDATION
from orienteer.run.known_orientations import known_orientations_in_words
from orienteer.run.measured_intensity import measured_intensity
from orienteer.run.run import Run
from orienteer.run.validation_settings import ValidationSettings
from orienteer.validate.coverage import Coverage, coverage
from orienteer.validate.densities import PhasedHalves, beside_the_run, densities_of
from orienteer.validate.half_phasing import half_phase_seed, phase_half, phase_run, phase_settings_for
from orienteer.validate.half_runs import iterate_halves
from orienteer.validate.halves import (
    Halves,
    begin_halves,
    common_group,
    on_device,
    reach_of,
    refuse_unfinished,
)
from orienteer.validate.identity import identity_of
from orienteer.validate.independence import check_independence, facts_of
from orienteer.validate.intensities import IntensityAgreement, compare_intensities, look_alikes, worse_of
from orienteer.validate.relative_turn import turn_of_tables
from orienteer.validate.result import KNOWN_ORIENTATIONS, HalfSummary, Validation
from orienteer.validate.sentinel_poses import HalfModel, PoseAgreement, pose_agreement
from orienteer.validate.side_by_side import SideBySide, can_go_side_by_side
from orienteer.validate.states import StateAgreement, is_distinct, likenesses, only_state, pair_states
from orienteer.validate.voxel_errors import voxel_errors
from orienteer.volume.volume import Volume

# Parts of a validation that a stopwatch times.
PARTS = (
    "halves: reconstruct", "halves: sentinels", "halves: phase", "compare intensities", "compare densities",
    "sentinels", "wait for the density", "voxel errors", "coverage", "write",
)  # fmt: skip


def validate(
    run: Run | str | os.PathLike[str],
    settings: ValidationSettings | None = None,
    phasing: PhaseSettings | None = None,
    *,
    device: DeviceName | None = None,
    halves: Halves | None = None,
    at_work: SideBySide | None = None,
) -> Validation:
    """Test the result of a run, and write the findings into the folder ``validation`` of the run.

    run : a finished run, or its folder.
    phasing : how both halves are phased.
    device : where to compute; by default the device of the run.
    halves : from :func:`begin_halves`, if they were begun already.
    at_work : processes that already work on the halves, with the same settings.

    >>> import orienteer
    >>> from orienteer.particle.bodies import sphere
    >>> beam, detector = orienteer.Beam(wavelength_A=2), orienteer.square_detector(16, 0.005, 0.2)
    >>> frames = orienteer.SimulateSettings(frames=500, photons_per_frame=300)
    >>> source = orienteer.simulate(sphere(20), beam, detector, frames, seed=1)
    >>> settings = orienteer.EmcSettings(iterations=1, level=1, diameter_A=40)
    >>> run = orienteer.Run.create("ball", source, settings, seed=1)
    >>> steps = list(run.iterate())
    >>> phasing = PhaseSettings(starts=2, schedule="20*dm 10*er", support_volume_A3=40000)
    >>> validate(run, ValidationSettings(replicates=0), phasing)  # doctest: +ELLIPSIS
    <Validation: Two independent halves of ... frames ...>
    """
    whole = run if isinstance(run, Run) else Run.open(run)
    settings, device = settings or ValidationSettings(), whole.device if device is None else device
    refuse_unfinished(whole)
    halves = halves or (at_work.halves if at_work else None) or begin_halves(whole, settings, device)
    folder = whole.path / VALIDATION
    if at_work is None or not at_work.is_on_whole:
        with part("voxel errors"):  # first, because other processes may still work on the halves
            errors = voxel_errors(whole, settings, device)
    with part("halves: reconstruct"):
        _bring_to_their_end(whole, halves, settings, phasing, device, at_work)
    phasing = phasing or PhaseSettings()
    seeds = [half_phase_seed(whole.seed, half) for half in (1, 2)]
    check_independence(
        *(
            replace(facts_of(one, frames.event_ids()), phase_seed=seed)
            for one, frames, seed in zip(halves.runs, halves.parts[:2], seeds, strict=True)
        )
    )
    with part("halves: sentinels"):
        # One after the other: each reconstruction holds all frames of its half.
        models = [halves.asked(half, device) for half in range(2)]
    summaries = [
        HalfSummary(
            one.path.name, one.seed, seed, model.frames, one.iteration, one.reason, model.diameter_A,
            phase_settings_for(one, phasing).symmetry,
        )
        for one, seed, model in zip(halves.runs, seeds, models, strict=True)
    ]  # fmt: skip
    n_states = len(whole.volumes())
    pairs = [pair_states(whole.volumes(), one.volumes()) for one in halves.runs]
    alike = likenesses(*(one.volumes() for one in halves.runs)) if n_states > 1 else np.ones((1, 1))
    states: list[StateAgreement] = []
    densities: list[PhasedHalves] = []
    troubles = _unlike_symmetries(whole, halves)
    poses: PoseAgreement | None = None
    first_told: list[HalfSummary] | None = None
    for state, own in enumerate(zip(*pairs, strict=True)):
        if None in own:
            diameter_A = min(model.diameter_A for model in models)
            states.append(StateAgreement.absent(state, own, _share_of(whole, state), diameter_A))
            continue
        with part("compare intensities"):
            intensity, with_whole = _compared_intensities(whole, halves, state, own, models, device)
        if first_told is None:
            with part("sentinels"):
                volume = on_device(measured_intensity(halves.runs[0], own[0]), device)
                poses = _sentinels(models, volume, intensity, common_group(*halves.runs))
        with part("halves: phase"):  # other processes may have done it meanwhile
            if at_work is not None:
                at_work.wait()
            phased, told, wrong = _phased(halves.runs, own, phasing, summaries, device)
        densities.append(
            PhasedHalves(
                state, phased, intensity, with_whole, reach_of(models)[0], seed=whole.seed,
                n_draws=settings.random_phases, device=device,
            )
        )  # fmt: skip
        with part("compare densities"):
            maps = densities[-1].maps()
        numbers, share = (own[0] + 1, own[1] + 1), _share_of(whole, state)
        agreement = StateAgreement(state + 1, numbers, share, maps, intensity, worse_of(with_whole))
        states.append(replace(agreement, is_distinct=is_distinct(alike, *own)))
        troubles, first_told = troubles + wrong, first_told or told
    first, summaries = states[0], first_told or summaries
    beside = at_work if at_work is not None and at_work.is_on_whole else None
    if beside is not None:
        with part("voxel errors"):  # another process computes them
            beside.wait_for_whole("errors")
            errors = voxel_errors(whole, settings, device)
    found = Validation(
        run_id=whole.described["run_id"],
        iteration=whole.iteration,
        halves=(summaries[0], summaries[1]),
        maps=first.maps,
        intensity=first.intensity,
        whole=first.whole,
        states=tuple(states) if n_states > 1 else (),
        sentinels=poses,
        errors=errors,
        given=_given(whole, phasing),
        troubles=troubles,
        settings={"validation": settings.model_dump(mode="json"), "phase": phasing.model_dump(mode="json")},
        seed=whole.seed,
        device=choose_device(device),
    )
    with part("coverage"):
        found = replace(found, coverage=_coverage(whole, found))
    if beside is not None:
        with part("wait for the density"):  # last: everything that does not need the density is done by now
            beside.wait_for_whole()
            # If the other process has failed, this makes the density.  If that fails as well, whoever asks
            # for the density is told; the validation does without.
            with suppress(OrienteerError):
                phase_run(whole, phasing, device)
    with part("compare densities"):
        of_run, wrong = densities_of(whole)
        found = beside_the_run(replace(found, troubles=found.troubles + wrong), of_run, densities)
    with part("write"):
        found = replace(found, belongs_to=identity_of(whole.path))
        found.save(folder)
    return found


def _bring_to_their_end(
    whole: Run, halves: Halves, settings: ValidationSettings, phasing: PhaseSettings | None,
    device: DeviceName, at_work: SideBySide | None,
) -> None:  # fmt: skip
    """Do the remaining steps of both halves, in processes of their own if that is faster."""
    if at_work is not None and at_work.is_at_work:
        at_work.wait_for_runs()
    elif not halves.finished and can_go_side_by_side(whole, device):
        with SideBySide() as processes:
            processes.start(whole, halves, settings, phasing, device)
            processes.wait()
    for _ in iterate_halves(halves.runs):
        pass


def _compared_intensities(
    whole: Run, halves: Halves, state: int, own: tuple[int, ...], models: list[HalfModel], device: DeviceName
) -> tuple[IntensityAgreement, tuple[IntensityAgreement, IntensityAgreement]]:
    """How far the halves agree about a state of the run, and how far each half agrees with the run.

    state : counted from 0; own : the model of each half that is this state.
    """
    edge, diameter_A = reach_of(models)
    volume = on_device(measured_intensity(whole, state), device)
    first_half, second_half = (
        on_device(measured_intensity(run, m), device) for run, m in zip(halves.runs, own, strict=True)
    )
    size = diameter_A, common_group(whole, *halves.runs).order
    intensity = halves.agreement(own, models, device)
    # The poses of frames that two models have both oriented give the rotation between the models.  With
    # several states, that rotation is searched for.
    of_whole = None
    if len(whole.volumes()) == 1:
        within_deg = float(np.degrees(1 / (edge * diameter_A)))
        of_whole = turn_of_tables(halves.runs[0].orientations(), whole.orientations(), within_deg)
    first = compare_intensities(first_half, volume, *size, edge, of_whole)
    # The turn of the second half to the whole follows from that of the first and that between the halves.
    near = np.asarray(compose(inverse(intensity.quaternion), first.quaternion))
    return intensity, (first, compare_intensities(second_half, volume, *size, edge, near))


def _unlike_symmetries(whole: Run, halves: Halves) -> tuple[str, ...]:
    """A sentence if the run and its halves have not all found the same symmetry in their frames."""
    first, second = (run.group for run in halves.runs)
    if first != second:
        found = f"The halves have found different symmetries, {first} and {second}"
    elif first != whole.group:
        found = f"The run of all frames has found the symmetry {whole.group}, but its halves {first}"
    else:
        return ()
    return (f"{found}: give the run the right one, reconstruct --symmetry.",)


def _share_of(whole: Run, state: int) -> float:
    """The share of a state, counted from 0, among the frames of the run that show any state."""
    shown = np.asarray(whole.orientations()["model"])
    return float((shown == state).sum() / max((shown >= 0).sum(), 1))


def _phased(
    runs: tuple[Run, Run], models: tuple[int, ...], settings: PhaseSettings, summaries: list[HalfSummary],
    device: DeviceName,
) -> tuple[dict[int, Phasing], list[HalfSummary], tuple[str, ...]]:  # fmt: skip
    """The density of each half, 1 or 2, that could be phased, both summaries, a sentence for each failure.

    models : of each half, counted from 0.
    """
    phased, told, troubles = {}, [], []
    for half, (run, model, summary) in enumerate(zip(runs, models, summaries, strict=True), start=1):
        try:
            found = phase_half(run, settings, summary.phase_seed, device, summary.diameter_A, model + 1)
        except FileError:
            raise
        except OrienteerError as error:
            # An intensity of mere noise may be the transform of no density; then the halves agree on nothing.
            troubles.append(f"{summary.path} could not be phased: {error.message}")
            told.append(summary)
            continue
        phased[half] = found
        remarks = tuple(found.remarks)
        told.append(replace(summary, phases_repeat_to_A=found.resolution_A, phasing_remarks=remarks))
    return phased, told, tuple(troubles)


def _sentinels(
    models: list[HalfModel], volume: Volume, intensity: IntensityAgreement, group: PointGroup
) -> PoseAgreement | None:
    """How far the halves agree on the poses of the sentinels.  volume : the intensity of the first half."""
    first, second = models
    if not len(first.poses):
        return None
    said = first.poses, second.poses, intensity.quaternion, group.name, first.is_flat
    # With a known symmetry, its group gives the equivalent poses; otherwise look for them in the intensity.
    if group.order > 1:
        return pose_agreement(*said)
    return pose_agreement(*said, look_alikes(volume, intensity))


def _coverage(run: Run, found: Validation) -> Coverage:
    """Directions with data at the resolution of the claim; at the edge of the data if there is no claim."""
    columns = only_state(run.orientations(), 0)
    merged = np.asarray(columns["model"]) >= 0
    merged &= ~np.asarray(columns.get("sentinel", np.zeros(len(merged))), bool)
    pixels, intensity = pixel_table(run.source), found.intensity
    edge = float(intensity.q_inv_A[np.isfinite(intensity.correlation)].max(initial=0.0))
    radius = 1 / found.resolution_A if found.resolution_A else edge
    outermost = float(pixels.length_inv_A.max())
    radius = min(radius, outermost) or outermost
    return coverage(
        columns["quaternion"], pixels.q_inv_A, radius, min(half.diameter_A for half in found.halves),
        weights=np.where(merged, columns["fluence"], 0.0), correction=pixels.correction,
        group=run.group,
    )  # fmt: skip


def _given(run: Run, phasing: PhaseSettings) -> tuple[str, ...]:
    """What was given to both halves about the particle, in words."""
    told = []
    if known_orientations_in_words(dict(run.settings)):
        told.append(KNOWN_ORIENTATIONS)
    given = dict.fromkeys((run.given_group.name, phasing.symmetry))
    told += [f"the symmetry {name}" for name in given if name != "C1"]
    if diameter_A := run.settings.diameter_A or phasing.diameter_A:
        told.append(f"the diameter {diameter_A:g} A")
    if phasing.support_volume_A3:
        told.append(f"the volume {phasing.support_volume_A3:.3g} A^3")
    return tuple(told)
