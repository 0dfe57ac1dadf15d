"""Junk: other objects that the beam hits, such as droplets, salt and debris."""

import numpy as np

from orienteer.particle.base import Particle
from orienteer.particle.bodies import Part, Spheroid, Sum
from orienteer.simulation.random_streams import random_stream


def junk_particles(n: int, radius_A: float, seed: int) -> tuple[Particle, ...]:
    """n random lumps of one to four spheroids, about as large as a particle of this radius."""
    draw = random_stream(seed, "junk")
    lumps: list[Particle] = []
    for _ in range(n):
        parts, place = [], np.zeros(3)
        for _ in range(draw.integers(1, 5)):
            axes = radius_A * draw.uniform(0.15, 0.6) * draw.uniform(0.7, 1.3, 3)
            body = Spheroid((float(axes[0]), float(axes[1]), float(axes[2])))
            parts.append(Part(body, offset_A=(float(place[0]), float(place[1]), float(place[2]))))
            direction = draw.standard_normal(3)
            place = place + direction / np.linalg.norm(direction) * axes.mean() * 1.5
        lumps.append(Sum(tuple(parts)))
    return tuple(lumps)
