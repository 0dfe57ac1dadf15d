"""Phasing: from an intensity to a density, unattended."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from orienteer.compute.arrays import Array, DeviceName, array_namespace, choose_device
from orienteer.compute.words import counted
from orienteer.errors import OrienteerError
from orienteer.phase.batches import refuse_too_many_starts, run_batches, starts_at_once
from orienteer.phase.conclusion import conclude
from orienteer.phase.course import LARGEST_SUPPORT, Course
from orienteer.phase.data import PhasingData, phasing_data, told_diameter_A
from orienteer.phase.held_out import free_log_likelihood, log_likelihood
from orienteer.phase.iterations import er
from orienteer.phase.result import Phasing
from orienteer.phase.schedule import parse_schedule
from orienteer.phase.settings import PhaseSettings
from orienteer.phase.sizes import size_doubts
from orienteer.phase.state import PhaseState
from orienteer.phase.support_volume import LEAST_VOLUME, choose_volume
from orienteer.volume.volume import Volume

# Called with a name for the work, the number of steps done, and their total.
Progress: TypeAlias = Callable[[str, int, int], None]
# Iterations of error reduction with all voxels, held-out ones included, after a start has been judged.
_POLISH = 20


def _silent(what: str, done: int, total: int) -> None:
    """Report nothing."""


def phase(
    intensity: Volume,
    settings: PhaseSettings | None = None,
    *,
    seed: int = 0,
    device: DeviceName = "auto",
    progress: Progress | None = None,
) -> Phasing:
    """The density of an intensity, from many random starts, and how far to trust it.

    intensity : cubic, in reciprocal space, q = 0 at the voxel n // 2, NaN where it was never measured.
    seed : of every random draw; the same seed gives the same result on the same machine.
    progress : called with a name for the work, the number of steps done, and their total.

    >>> import numpy as np
    >>> x = np.arange(-8, 8)
    >>> body = np.add.outer(np.add.outer(x**2, 2 * x**2), x**2 / 2) < 8  # an ellipsoid, 11 to 32 A across
    >>> transform = np.fft.fftshift(np.fft.fftn(np.fft.ifftshift(body)))
    >>> intensity = Volume(abs(transform) ** 2, voxel_size=1 / 64, space="reciprocal")
    >>> phasing = phase(intensity, PhaseSettings(starts=2, schedule="20*dm 10*er"), seed=1)
    >>> phasing  # doctest: +ELLIPSIS
    <Phasing of ... voxels along an edge: ... of 2 starts agree, ...>
    >>> phasing.density.space
    'real'
    """
    settings = settings or PhaseSettings()
    tell = progress or _silent
    data = phasing_data(intensity, settings, seed=seed, device=choose_device(device))
    refuse_too_many_starts(data, settings.starts)
    course, volume = prepared_course(data, settings, seed, tell)
    state = phase_starts(course, settings, volume, seed, tell)
    scores = free_log_likelihood(state.density, state.background, data)
    judged = log_likelihood(state.density, state.background, data, data.judging)
    state = _polished(state, course)
    facts = {
        "seed": seed,
        "settings": settings.model_dump(mode="json"),
        "further_remarks": (
            *_remarks(data, not settings.diameter_A and told_diameter_A(intensity) > 0),
            *_on_resolution(data.edge_A, settings.resolution_A, data.box_A),
        ),
    }
    return conclude(
        state.density,
        state.support,
        state.background,
        scores,
        judged,
        data,
        centred=course.group.order == 1,
        metadata=intensity.metadata,
        electrons=settings.electrons,
        mass_kDa=settings.mass_kDa,
        facts=facts,
    )


def prepared_course(
    data: PhasingData, settings: PhaseSettings, seed: int, tell: Progress = _silent
) -> tuple[Course, float]:
    """The course, and the final volume of the supports in voxels, given or found."""
    course = Course.of(data, settings)
    if settings.support_volume_A3:
        return course, _given_volume(data, settings.support_volume_A3)
    return course, choose_volume(
        course, seed, lambda done, total: tell("Choosing the volume of the support", done, total)
    )


def _given_volume(data: PhasingData, volume_A3: float) -> float:
    """The given volume in voxels; one that is too small or too large for any density is refused."""
    voxel_A3 = data.voxel_A**3
    least, most = LEAST_VOLUME * voxel_A3, LARGEST_SUPPORT * data.box_A**3
    hint = f"It may have from {least:.3g} to {most:.3g} A^3; 0 lets the data choose."
    if volume_A3 < least:
        raise OrienteerError(
            f"a support of {volume_A3:g} A^3 is too small: at a resolution of {data.edge_A:.3g} A a voxel of "
            f"the density has {voxel_A3:.3g} A^3, and a support needs at least {LEAST_VOLUME} voxels.",
            hint,
        )
    if volume_A3 > most:
        raise OrienteerError(
            f"a support of {volume_A3:g} A^3 does not fit a box of {data.box_A:.4g} A: amplitudes cannot "
            "determine a density that fills more than a quarter of the box.",
            hint,
        )
    return volume_A3 / voxel_A3


def phase_starts(
    course: Course, settings: PhaseSettings, volume: float, seed: int, tell: Progress = _silent
) -> PhaseState:
    """All starts after the schedule, with densities that obey the constraints.

    volume : final voxels of each support.
    """
    phases = parse_schedule(settings.schedule)
    total = settings.starts * sum(phase.count for phase in phases)
    needed_GiB = refuse_too_many_starts(course.data, settings.starts)
    what = f"Phasing {counted(settings.starts, 'start')} of {course.data.n}^3 voxels in {needed_GiB:.2g} GiB"
    volumes = np.full(settings.starts, volume)
    numbers = range(settings.starts)
    return _joined(
        list(run_batches(course, phases, numbers, volumes, seed, lambda done: tell(what, done, total)))
    )


def _joined(parts: list[PhaseState]) -> PhaseState:
    if len(parts) == 1:
        return parts[0]
    xp = array_namespace(parts[0].density)

    def joined(name: str) -> Array:
        return xp.concatenate([getattr(part, name) for part in parts])

    volume = np.concatenate([part.volume for part in parts])
    return PhaseState(joined("density"), joined("support"), joined("background"), volume, parts[0].positive)


def _polished(state: PhaseState, course: Course) -> PhaseState:
    """The starts after some error reduction with all measured voxels."""
    everything = course.data.with_all_voxels()
    size = starts_at_once(course.data, state.n_starts)
    for first in range(0, state.n_starts, size):
        chosen = slice(first, first + size)
        part = PhaseState(
            state.density[chosen],
            state.support[chosen],
            state.background[chosen],
            state.volume[chosen],
            state.positive,
        )
        for _ in range(_POLISH):
            er(part, everything)  # in place: ``part`` holds views of the whole state
        course.symmetrise(part)
    return state


def _on_resolution(edge_A: float, asked_A: float, box_A: float) -> tuple[str, ...]:
    """A sentence if the requested resolution is finer than that of the data, by more than a voxel.

    >>> _on_resolution(39.0, 5.0, 1000.0)
    ('A resolution of 5 A was asked for, but the data end at 39 A.',)
    >>> _on_resolution(39.0, 38.5, 1000.0), _on_resolution(39.0, 0.0, 1000.0)
    ((), ())
    """
    if not asked_A or box_A / asked_A <= box_A / edge_A + 1:
        return ()
    return (f"A resolution of {asked_A:g} A was asked for, but the data end at {edge_A:.3g} A.",)


def _remarks(data: PhasingData, is_told: bool) -> tuple[str, ...]:
    """is_told : whether the diameter was taken from the metadata of the intensity."""
    said = []
    if is_told:
        said.append(
            f"The diameter of the particle, {data.diameter_A:.3g} A, comes from the intensity's metadata."
        )
    if data.autocorrelation.is_found:
        said.append(
            f"The diameter of the particle, {data.diameter_A:.3g} A, was found in the autocorrelation."
        )
    found = data.autocorrelation
    said += size_doubts(data.diameter_A, not found.is_found, found.seen_A)
    if data.box_A < 2 * data.diameter_A:
        said.append(
            f"The box of {data.box_A:.4g} A is less than two diameters wide, so speckles have few voxels."
        )
    return tuple(said)
