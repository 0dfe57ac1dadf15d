"""Published times of other programs on clusters, as facts with their sources."""

from dataclasses import dataclass

from orienteer.scaling.problem import Problem


@dataclass(frozen=True)
class Published:
    """Published seconds of one iteration on several numbers of GPUs.

    source : publication; hardware : on which the times were measured; ranks : numbers of GPUs.
    """

    source: str
    hardware: str
    problem: Problem
    ranks: tuple[int, ...]
    seconds: tuple[float, ...]


_EKEBERG = "Ekeberg, Engblom and Liu, Table 4.2"
_GTX = "NVIDIA GTX 680, four in a node, QDR InfiniBand"
# Frames and orientations of their largest case; models of 64^3 and 128^3 voxels, all frames in one set.
EKEBERG = tuple(
    Published(_EKEBERG, _GTX, Problem(10_000, pixels, 86_520, edge, n_halves=1), (16, 32, 64, 96, 100), times)
    for pixels, edge, times in (
        (4_096, 64, (164.6, 83.5, 42.3, 28.3, 27.2)),
        (16_384, 128, (552.2, 281.2, 141.6, 95.4, 91.6)),
    )
)

# Strong scaling of SpiniFEL on Frontier: 131 072 images of 128 x 128 pixels, 128 to 1 024 ranks.  From 512
# ranks on there was no further gain (Blaschke et al. 2024, section 2.3.4).
SPINIFEL_IMAGES, SPINIFEL_LAST_GAIN = 131_072, 512

# Number of nodes of Frontier -> seconds to start SpiniFEL there, from an environment that was sent to them
# (Blaschke et al. 2024, Table 2).
SPINIFEL_START = {100: 67.0, 1_000: 136.0, 2_000: 145.0, 4_000: 268.0}
