"""Three grids of orientations: how far can an orientation be from the nearest pose, and how far is it mostly?

A reconstruction needs every orientation to be near some pose.  Fewer poses for the same covering radius make
every step of it quicker; a narrow spread of distances means that no orientation is served worse than others.
"""

import numpy as np
from matplotlib import pyplot as plt

import orienteer
from orienteer.orientation.quaternion import random_uniform

LEVELS = {
    "600-cell": (1, 2, 3, 4, 5, 6, 7),
    "hopf": (0, 1, 2),
    "super-fibonacci": (72, 200, 576, 1600, 4608, 12_000),
}
OF_SIMILAR_SIZE = {"600-cell": 4, "hopf": 2, "super-fibonacci": 4608}

figure, (radius_axes, spread_axes) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
for kind, levels in LEVELS.items():
    grids = [orienteer.make_grid(kind, level) for level in levels]
    n_poses = [len(grid) for grid in grids]
    radius_axes.loglog(n_poses, [grid.covering_radius_deg for grid in grids], "o-", label=kind)
radius_axes.set(xlabel="poses", ylabel="covering radius (degrees)", title="the worst orientation")
radius_axes.set_yticks([5, 10, 20, 40], ["5", "10", "20", "40"])
radius_axes.minorticks_off()
radius_axes.grid(alpha=0.3)
radius_axes.legend(frameon=False)

orientations = random_uniform(100_000, seed=1)
for kind, level in OF_SIMILAR_SIZE.items():
    grid = orienteer.make_grid(kind, level)
    _, distance_deg = grid.nearest(orientations)
    # Distances shrink with the cube root of the number of poses: as if every grid had 4608.
    scaled_deg = distance_deg * (len(grid) / 4608) ** (1 / 3)
    spread_axes.hist(
        scaled_deg, np.linspace(0, 16, 81), histtype="step", lw=1.6, label=f"{kind} ({len(grid)})"
    )
spread_axes.set(xlabel="distance to the nearest pose, scaled to 4608 poses (degrees)", ylabel="orientations")
spread_axes.set_title("100 000 random orientations")
spread_axes.legend(frameon=False, loc="upper right", title="grid (poses)")

figure.savefig("compare_grids.png", dpi=110)
print("compare_grids.png")
