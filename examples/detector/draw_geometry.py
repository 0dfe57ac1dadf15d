"""A detector of four quadrants around a hole for the beam, one of them out of place, drawn with its rings.

Panels stand in metres in the laboratory frame, seen against the beam; a pixel's resolution follows from where
it stands and from the wavelength, which belongs to the beam.
"""

import numpy as np

import orienteer

N, PIXEL_M, DISTANCE_M = 128, 0.0005, 0.15
HOLE_M, GAP_M = 0.004, 0.001

# Each quadrant begins at the corner nearest to the beam; they turn about the hole like a pinwheel.
panels = []
for k in range(4):
    turn = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]]) if k % 2 else np.eye(3)
    turn = turn * ([1, 1, 1] if k < 2 else [-1, -1, 1])
    panels.append(
        orienteer.Panel(
            name=f"q{k}",
            origin_m=turn @ [HOLE_M, -HOLE_M + GAP_M, DISTANCE_M],
            fast_m=turn @ [PIXEL_M, 0, 0],
            slow_m=turn @ [0, PIXEL_M, 0],
            shape=(N, N),
            first_pixel=k * N * N,
            groups=("all", f"q{k}"),
        )
    )
detector = orienteer.Detector(panels, frame_shape=(4, N, N), name="pinwheel")

# A quadrant that was mounted 3 mm too far out, and pixels that may not decide on orientations or are dead.
detector = detector.moved([0.003, 0.003, 0], group="q0")
beam = orienteer.Beam(photon_energy_eV=7000)
mask = np.zeros(detector.n_pixels, np.uint8)
mask[detector.q_length_inv_A(beam.wavelength_A) > 1 / 4.5] = orienteer.PixelUse.MERGE_ONLY
mask.reshape(4, N, N)[2, 40:56, :] = orienteer.PixelUse.NEVER
detector = detector.with_mask(mask)

figure = detector.show(wavelength_A=beam.wavelength_A)
figure.savefig("draw_geometry.png", dpi=110)
print("draw_geometry.png")
