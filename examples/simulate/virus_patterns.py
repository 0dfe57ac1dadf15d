"""Four orientations of a small virus: the photons to be expected, and those that a pulse of the laser gives.

Each shot is seen twice, so the rows differ by the noise of counting alone.
"""

from matplotlib import pyplot as plt
from matplotlib.colors import LogNorm

import orienteer
from orienteer.particle.named_bodies import virus

particle = virus(diameter_A=300)
beam = orienteer.Beam(photon_energy_eV=4600, polarisation="x")
detector = orienteer.square_detector(
    96, distance_m=0.2, edge_resolution_A=14, wavelength_A=beam.wavelength_A, beam_stop_radius_pixels=3
)
settings = orienteer.SimulateSettings(frames=4, photons_per_frame=10_000, seed=7)
experiment = orienteer.Experiment(particle, beam, detector, settings, device="cpu")

shots = {
    "expected photons": experiment.expected(experiment.truth()),
    "counted photons": next(experiment.batches()).dense(),
}

figure, rows = plt.subplots(2, 4, figsize=(11, 5.8), layout="constrained")
for axes_of_row, (label, frames) in zip(rows, shots.items(), strict=True):
    axes_of_row[0].set_ylabel(label)
    for axes, image in zip(axes_of_row, detector.assemble(frames), strict=True):
        # A pixel without a photon gets the darkest colour: zero has no logarithm.
        shown = axes.imshow(image.clip(min=0.03), origin="lower", norm=LogNorm(0.03, 100), cmap="magma")
        axes.set(xticks=[], yticks=[])
figure.colorbar(shown, ax=rows, label="photons per pixel", shrink=0.8)
edge_A = detector.edge_resolution_A(beam.wavelength_A)
figure.suptitle(
    f"A virus of 300 Å in four orientations, {edge_A:.0f} Å at the edge, 10 000 photons in the mean"
)
figure.savefig("virus_patterns.png", dpi=110)
print("virus_patterns.png")
