"""The facts of ``phasing.json`` that the report uses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from orienteer.report.plain_values import as_count, as_number, as_numbers, as_tables, as_texts, as_words, at

ARBITRARY = "arbitrary units"


@dataclass(frozen=True)
class PhasingFacts:
    """Facts of phase retrieval; None or empty if the file does not hold them.

    prtf_q_inv_A, prtf : repeatability of the phases by shell; prtf_A : where it falls below 1/e.
    n_starts, n_averaged : random starts, and those of the winning cluster, which were averaged.
    cluster_sizes : starts in each cluster, the winner first.
    free_log_likelihood : of the winning cluster, on voxels that were left out of phasing.
    edge_A : full-period resolution of the outermost measured voxels.
    weak_modes : what unmeasured voxels leave undetermined, in words.
    unit : of the density, abbreviated.
    settings : the ``[phase]`` section as it was used.
    run_id, iteration : of the run whose intensity was phased.
    """

    prtf_q_inv_A: list[float | None] = field(default_factory=list)
    prtf: list[float | None] = field(default_factory=list)
    prtf_A: float | None = None
    prtf_reaches_edge: bool = False
    n_starts: int | None = None
    n_averaged: int | None = None
    cluster_sizes: list[int] = field(default_factory=list)
    r_factor: float | None = None
    free_log_likelihood: float | None = None
    weak_modes: str = ""
    background: float | None = None
    edge_A: float | None = None
    diameter_A: float | None = None
    support_volume_A3: float | None = None
    particle_volume_A3: float | None = None
    unit: str = ARBITRARY
    scale_source: str = ""
    hand: str = ""
    seed: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    run_id: str = ""
    iteration: int | None = None
    remarks: list[str] = field(default_factory=list)

    @property
    def symmetry(self) -> str:
        """The point group that was imposed on the density; empty if the file does not say."""
        return as_words(self.settings.get("symmetry"))


def phasing_facts(said: dict[str, Any]) -> PhasingFacts:
    """The facts in the content of ``phasing.json``."""
    clusters = as_tables(said.get("clusters"))
    settings = said.get("settings")
    return PhasingFacts(
        prtf_q_inv_A=as_numbers(at(said, "prtf", "q_inv_A")),
        prtf=as_numbers(at(said, "prtf", "values")),
        prtf_A=as_number(said.get("resolution_A")),
        prtf_reaches_edge=said.get("reaches_edge") is True,
        n_starts=as_count(said.get("n_starts")),
        n_averaged=as_count(said.get("n_averaged")),
        cluster_sizes=[len(one["members"]) for one in clusters if isinstance(one.get("members"), list)],
        r_factor=as_number(at(said, "r_factor", "overall")),
        free_log_likelihood=as_number(clusters[0].get("score")) if clusters else None,
        weak_modes=as_words(at(said, "weak_modes", "words")),
        background=as_number(said.get("background")),
        edge_A=as_number(said.get("edge_A")),
        diameter_A=as_number(said.get("diameter_A")),
        support_volume_A3=as_number(said.get("support_volume_A3")),
        particle_volume_A3=as_number(said.get("particle_volume_A3")),
        unit=_short(as_words(said.get("unit"))),
        scale_source=as_words(at(said, "scale", "source")),
        hand=as_words(said.get("hand")),
        seed=as_count(said.get("seed")),
        settings=settings if isinstance(settings, dict) else {},
        run_id=as_words(at(said, "intensity", "run_id")),
        iteration=as_count(at(said, "intensity", "iteration")),
        remarks=as_texts(said.get("remarks")),
    )


def _short(unit: str) -> str:
    """A unit short enough for the label of an axis.

    >>> _short("electrons / A^3"), _short("arbitrary, 1 is the mean inside the support")
    ('electrons/Å³', 'arbitrary units')
    """
    if not unit or unit.startswith("arbitrary"):
        return ARBITRARY
    return unit.replace(" / ", "/").replace("A^3", "Å³")
