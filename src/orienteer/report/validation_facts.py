"""The facts of ``validation/validation.json`` that the report uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orienteer.report.plain_values import as_count, as_number, as_numbers, as_tables, as_texts, as_words, at
from orienteer.validate.half_maps import CURVES


@dataclass(frozen=True)
class StateFacts:
    """One of several states: the resolutions to which its independent halves and their speckles agree.

    is_distinct : whether its halves agree better with each other than with other states.
    """

    resolution_A: float | None
    speckles_A: float | None
    is_distinct: bool = True


@dataclass(frozen=True)
class ValidationFacts:
    """Facts of a validation; None or empty if the file does not hold them.

    run_id, iteration : of the run that was validated.
    resolution_A : to which the halves agree by ``criterion``; None if they do not agree.
    reaches_edge : whether the curve never falls below the criterion.
    too_few_speckles : whether the halves agree, but on too few speckles to rule out chance.
    resolutions_A : the resolution by each criterion.
    q_inv_A : of the curves ``fsc``, which are stored by name.
    intensity_q_inv_A, intensity_correlation : agreement of the two intensities, shell means subtracted;
        intensity_A : resolution to which they show the same speckles.
    whole_q_inv_A, whole_correlation, whole_A : the same between the run's own intensity and that of the half
        that agrees with it less.
    density_q_inv_A, density_fsc, density_A : Fourier shell correlation of the run's own density and that of
        the half that agrees with it better, and where it falls below 0.5; empty if not compared.
    density_verdict : whether the claim holds for that density; empty if that is not known.
    doubts : sentences about densities of the run for which the claim does not hold.
    sentinel_deg : median angle between the poses that the halves give to frames that neither has merged;
        chance_deg : the angle that random poses would give.
    half_frames, half_seeds : of each half set.
    states : one entry for each of several states; empty if there is only one.
    error_q_inv_A, relative_error : of the intensity by shell, from ``n_replicates`` of the bootstrap.
    """

    run_id: str = ""
    iteration: int | None = None
    statement: str = ""
    remarks: list[str] = field(default_factory=list)
    resolution_A: float | None = None
    criterion: str = "0.143"
    reaches_edge: bool = False
    too_few_speckles: bool = False
    resolutions_A: dict[str, float | None] = field(default_factory=dict)
    q_inv_A: list[float | None] = field(default_factory=list)
    fsc: dict[str, list[float | None]] = field(default_factory=dict)
    intensity_q_inv_A: list[float | None] = field(default_factory=list)
    intensity_correlation: list[float | None] = field(default_factory=list)
    intensity_A: float | None = None
    whole_q_inv_A: list[float | None] = field(default_factory=list)
    whole_correlation: list[float | None] = field(default_factory=list)
    whole_A: float | None = None
    density_q_inv_A: list[float | None] = field(default_factory=list)
    density_fsc: list[float | None] = field(default_factory=list)
    density_A: float | None = None
    density_verdict: str = ""
    doubts: list[str] = field(default_factory=list)
    sentinel_deg: float | None = None
    chance_deg: float | None = None
    n_sentinels: int | None = None
    half_frames: list[int] = field(default_factory=list)
    half_seeds: list[int] = field(default_factory=list)
    states: list[StateFacts] = field(default_factory=list)
    empty_share: float | None = None
    worst_density: float | None = None
    largest_gap_deg: float | None = None
    coverage_q_inv_A: float | None = None
    error_q_inv_A: list[float | None] = field(default_factory=list)
    relative_error: list[float | None] = field(default_factory=list)
    n_replicates: int | None = None

    @property
    def run_is_another(self) -> bool:
        """Whether the run of all frames shows something other than what its halves agree on."""
        return bool(self.whole_q_inv_A) and self.resolution_A is not None and self.whole_A is None

    @property
    def is_corrected(self) -> bool:
        """Whether the correlation that the mask itself causes was removed."""
        return "corrected" in self.fsc


def validation_facts(said: dict[str, Any]) -> ValidationFacts:
    """The facts in the content of ``validation.json``."""
    fsc, resolutions = said.get("fsc"), said.get("resolutions_A")
    # If no phases were randomised, these two curves only repeat the masked one.
    is_corrected = not isinstance(fsc, Mapping) or fsc.get("random_from_inv_A", 0.0) is not None
    curves = [name for name in CURVES if is_corrected or name not in ("corrected", "randomised")]
    halves = as_tables(said.get("halves"))
    sizes = [as_count(one.get("frames")) for one in halves]
    seeds = [as_count(one.get("seed")) for one in halves]
    criterion = said.get("criterion")
    return ValidationFacts(
        run_id=as_words(said.get("run_id")),
        iteration=as_count(said.get("iteration")),
        statement=as_words(said.get("statement")),
        remarks=as_texts(said.get("remarks")),
        resolution_A=_positive(said.get("resolution_A")),
        criterion=str(criterion) if isinstance(criterion, (str, float)) and criterion else "0.143",
        reaches_edge=said.get("reaches_edge") is True,
        too_few_speckles=said.get("too_few_speckles") is True,
        resolutions_A=(
            {str(name): _positive(value) for name, value in resolutions.items()}
            if isinstance(resolutions, Mapping)
            else {}
        ),
        q_inv_A=as_numbers(at(fsc, "q_inv_A")),
        fsc={name: as_numbers(at(fsc, name)) for name in curves if as_numbers(at(fsc, name))},
        intensity_q_inv_A=as_numbers(at(said, "intensity", "q_inv_A")),
        intensity_correlation=as_numbers(at(said, "intensity", "correlation")),
        intensity_A=_positive(at(said, "intensity", "agrees_to_A")),
        whole_q_inv_A=as_numbers(at(said, "whole", "q_inv_A")),
        whole_correlation=as_numbers(at(said, "whole", "correlation")),
        whole_A=_positive(at(said, "whole", "agrees_to_A")),
        density_q_inv_A=as_numbers(at(said, "density", "q_inv_A")),
        density_fsc=as_numbers(at(said, "density", "correlation")),
        density_A=_positive(at(said, "density", "agrees_to_A")),
        density_verdict=as_words(at(said, "density", "verdict")),
        doubts=as_texts(said.get("doubts")),
        sentinel_deg=as_number(at(said, "sentinels", "median_deg")),
        chance_deg=as_number(at(said, "sentinels", "chance_deg")),
        n_sentinels=as_count(at(said, "sentinels", "frames")),
        half_frames=[size for size in sizes if size is not None],
        half_seeds=[seed for seed in seeds if seed is not None],
        states=[
            StateFacts(
                _positive(one.get("resolution_A")),
                _positive(one.get("speckles_A")),
                one.get("is_distinct") is not False,
            )
            for one in as_tables(said.get("states"))
        ],
        empty_share=as_number(at(said, "coverage", "empty_share")),
        worst_density=as_number(at(said, "coverage", "worst_density")),
        largest_gap_deg=as_number(at(said, "coverage", "largest_gap_deg")),
        coverage_q_inv_A=_positive(at(said, "coverage", "q_inv_A")),
        error_q_inv_A=as_numbers(at(said, "bootstrap", "q_inv_A")),
        relative_error=as_numbers(at(said, "bootstrap", "relative_error")),
        n_replicates=as_count(at(said, "bootstrap", "replicates")),
    )


def _positive(value: Any) -> float | None:
    number = as_number(value)
    return number if number is not None and number > 0 else None
