"""Geometries that the tests of this folder share, all written for them."""

import numpy as np
import pytest

from orienteer.detector.detector import Detector
from orienteer.detector.panel import Panel

# Modelled on an AGIPD: modules on a leading axis, two ASICs each, quadrants that move together.
MODULES_GEOM = """\
; two modules of two ASICs each
photon_energy = 9.3 keV      ; a comment behind a value
clen = 200 mm
res = 5000
adu_per_photon = 60
data = /entry_1/data_1/data
mask = /entry_1/data_1/mask
mask_good = 0
mask_bad = 0xff
dim0 = %
dim2 = ss
dim3 = fs
peak_list = /entry_1/result_1

rigid_group_q0 = p0a0,p0a1
rigid_group_q1 = p1a0, p1a1
rigid_group_collection_quadrants = q0,q1
group_all = q0,q1

p0a0/dim1 = 0
p0a0/min_fs = 0
p0a0/max_fs = 15
p0a0/min_ss = 0
p0a0/max_ss = 7
p0a0/fs = +0.002x -0.999998y
p0a0/ss = +0.999998x +0.002y
p0a0/corner_x = -30.5
p0a0/corner_y = 20.25
p0a0/coffset = 0.001

p0a1/dim1 = 0
p0a1/min_fs = 0
p0a1/max_fs = 15
p0a1/min_ss = 8
p0a1/max_ss = 15
p0a1/fs = +0.002x -0.999998y
p0a1/ss = +0.999998x +0.002y
p0a1/corner_x = -20.5
p0a1/corner_y = 20.25

p1a0/dim1 = 1
p1a0/min_fs = 0
p1a0/max_fs = 15
p1a0/min_ss = 0
p1a0/max_ss = 7
p1a0/fs = -x +0.01z
p1a0/ss = - 1.0y
p1a0/corner_x = 20
p1a0/corner_y = 0

p1a1/dim1 = 1
p1a1/min_fs = 0
p1a1/max_fs = 15
p1a1/min_ss = 8
p1a1/max_ss = 15
p1a1/fs = -x
p1a1/ss = -y
p1a1/corner_x = 20
p1a1/corner_y = -10
"""

# Modelled on a JUNGFRAU: one tall array, panels of 4 x 6 pixels with a gap between them.
STACKED_GEOM = """\
wavelength = 1.3 A
clen = 0.1
res = 13333.3
dim0 = %
dim1 = ss
dim2 = fs
a/min_fs = 0
a/max_fs = 5
a/min_ss = 0
a/max_ss = 3
a/corner_x = 1
a/corner_y = -8
a/fs = 1.0x
a/ss = 1.0y
b/min_fs = 0
b/max_fs = 5
b/min_ss = 6
b/max_ss = 9
b/corner_x = -7
b/corner_y = 2
b/fs = 1.0x
b/ss = 1.0y
"""


@pytest.fixture
def tilted_detector() -> Detector:
    """Two tilted panels in different groups, a gap in the stored frame, a mask of all levels, an efficiency."""
    cosine, sine = np.cos(0.3), np.sin(0.3)
    panels = [
        Panel(
            "p0",
            (0.001, -0.002, 0.1),
            (2e-4, 0, 0),
            (0, 3e-4 * cosine, 3e-4 * sine),
            (3, 5),
            0,
            groups=("all", "left"),
        ),
        Panel("p1", (-0.004, 0.001, 0.1), (0, 2e-4, 0), (2e-4, 0, 0), (4, 5), 20, groups=("all", "right")),
    ]
    random = np.random.default_rng(1)
    return Detector(
        panels,
        frame_shape=(8, 5),
        mask=random.integers(0, 3, 40),
        efficiency=random.uniform(0.5, 1, 40),
        name="two tilted panels",
        collections={"sides": ("left", "right")},
    )


@pytest.fixture
def box_around_the_sample() -> Detector:
    """Six square panels that close a cube of 0.2 m around the sample."""
    n, half = 48, 0.1
    step = 2 * half / n
    axes = np.eye(3)
    panels = []
    for normal in range(3):
        fast, slow = axes[(normal + 1) % 3], axes[(normal + 2) % 3]
        for sign in (-1, 1):
            origin = sign * half * axes[normal] - half * fast - half * slow
            panels.append(
                Panel(
                    f"n{normal}{'+' if sign > 0 else '-'}",
                    origin,
                    step * fast,
                    step * slow,
                    (n, n),
                    len(panels) * n * n,
                )
            )
    return Detector(panels, frame_shape=(6, n, n), name="box")
