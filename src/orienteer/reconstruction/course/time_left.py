"""Estimate how long a run will still take from the time of its last iteration."""

from collections.abc import Sequence
from dataclasses import replace

from orienteer.reconstruction.course.course import Course, fewest_iterations
from orienteer.reconstruction.course.ladder import Stage
from orienteer.reconstruction.frames.pixels import PixelTable
from orienteer.reconstruction.orienting.temperature import Annealing

# Typical number of iterations of a later stage.
_ITERATIONS_OF_STAGE = 5


def seconds_left(
    seconds: float,
    course: Course,
    annealing: Annealing,
    stages: Sequence[Stage],
    pixels: PixelTable,
    group_order: int,
    perplexity: float,
    n_models: int = 1,
    most_models: int = 1,
) -> float:
    """Seconds to the end, if later iterations take as long per pose and pixel as this one did.

    seconds : time of an iteration of the present stage.
    group_order : order of the point group that reduces the grid.
    perplexity : effective number of poses that a frame is spread over.
    n_models, most_models : number of models now, and at the end; the time is proportional to it.
    """
    if course.finished:
        return 0.0
    # Of two passes the first costs most: in the second each frame is compared with a few poses only.
    n_poses = [replace(stage, level=stage.first_level).n_poses(group_order) for stage in stages]
    cost = [
        n * len(pixels.choose(stage.scored_inv_A, stage.merged_inv_A)[0])
        for n, stage in zip(n_poses, stages, strict=True)
    ]
    fewest = fewest_iterations(perplexity)
    settling = course.iterations_to_settle(annealing.iterations_done, perplexity)
    here = annealing.iterations_left + settling
    last = max(n_models, most_models) if course.grows else n_models
    work = here * cost[course.stage] * n_models + _ITERATIONS_OF_STAGE * sum(cost[course.stage + 1 :]) * last
    if course.stage == 0:
        whole = Annealing(round(n_poses[0]), is_first=True, is_followed=annealing.is_followed)
        work += (course.n_starts - 1 - course.start) * (whole.iterations_left + fewest) * cost[0]
        # With each model that is added, the first stage is done again.
        again = Annealing(round(n_poses[0]), after_split=True).iterations_left + fewest
        work += sum(again * cost[0] * models for models in range(n_models + 1, last + 1))
    n_left = course.most_iterations - course.iteration
    work = min(work, n_left * max(cost[course.stage :]) * last)
    return seconds * work / (cost[course.stage] * n_models)
