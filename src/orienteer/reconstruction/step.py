"""The numbers that one iteration reports."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Step:
    """Numbers of one iteration; all of them can be written as JSON.

    iteration : counts from 1.
    log_likelihood : mean over the frames of the evidence ln P(frame | model) over all poses, in nats; a lower
        bound of it while the temperature is above 1.
    change : relative rms change of the model.
    inverse_temperature : factor of the scores; 1 is the likelihood itself.
    perplexity : effective number of poses that a frame is spread over.
    grid_level, n_rotations : divisions and poses of the grid of orientations.
    resolution_A : full-period resolution up to which pixels orient frames, whatever they show.
    agrees_to_A : full-period resolution to which the halves agree; None without halves, if they agree
        nowhere, or in the first stage, in which they still agree about their common start.
    sentinel_agreement_deg : median angle between the poses that the two halves give to a sentinel.  Measured
        every fifth iteration and at the end of a stage; None without halves.
    sentinel_gain_nats : how much likelier, at the temperature of the step, the models make a sentinel than
        their radial mean does, measured at the same times; below 0, the models show nothing but noise.  None
        without halves.
    half_correlation : mean over the scored shells of the correlation between the halves; None without halves.
    seconds, seconds_left : time of this iteration, and an estimate for the rest of the run.
    photons_merged : sum of the merged photons.
    stage, n_stages, start : where the run is, counted from 1.
    note : what was decided after this iteration, such as which start goes on.
    states : for each of several models, its ``occupancy``, the share of the frames that show it, and
        ``agrees_to_A``, the resolution to which its halves agree (None as above).
    sent_bytes : bytes that all ranks together sent to each other; 0 for a single rank.
    symmetry : of the models, given or found.
    radial : q_inv_A, intensity and, if there are halves, half_correlation of each shell, for a small plot.
    """

    iteration: int
    log_likelihood: float
    change: float
    inverse_temperature: float
    perplexity: float
    grid_level: int
    n_rotations: int
    resolution_A: float
    sentinel_agreement_deg: float | None
    half_correlation: float | None
    seconds: float
    seconds_left: float | None
    photons_merged: float
    stage: int
    n_stages: int
    start: int
    finished: bool
    reason: str
    note: str = ""
    states: list[dict[str, float | None]] = field(default_factory=list)
    radial: dict[str, list[float]] = field(default_factory=dict)
    agrees_to_A: float | None = None
    sentinel_gain_nats: float | None = None
    sent_bytes: int = 0
    symmetry: str = "C1"
