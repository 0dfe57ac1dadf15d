"""The built-in bodies, by name: particles that need no file."""

from collections.abc import Callable

import numpy as np

from orienteer.errors import OrienteerError
from orienteer.orientation.quaternion import from_axis_angle
from orienteer.particle.base import Particle
from orienteer.particle.bodies import PROTEIN_DENSITY, Part, Spheroid, Sum, core_shell, sphere
from orienteer.particle.checked_numbers import as_positive
from orienteer.particle.polyhedron import icosahedron
from orienteer.particle.structure import Structure, blobs
from orienteer.particle.turned import Turned

# Electrons per Å³ of a packed viral genome with its water, and of the loose layer between it and the shell.
GENOME_DENSITY = 0.47
LOOSE_DENSITY = 0.36


def virus(diameter_A: float, density: float = PROTEIN_DENSITY) -> Sum:
    """An icosahedral virus: a protein shell, a loosely filled layer, and a denser core of the same shape.

    diameter_A : from corner to opposite corner; the shell is 0.1 of it thick, and the core 0.7 of it wide.
    density : of the shell, in electrons per Å³; the densities inside scale with it.
    """
    scale = density / PROTEIN_DENSITY
    outer = icosahedron(diameter_A, density)
    inner = icosahedron(0.8 * diameter_A, scale * (LOOSE_DENSITY - PROTEIN_DENSITY))
    core = icosahedron(0.7 * diameter_A, scale * (GENOME_DENSITY - LOOSE_DENSITY))
    return Sum((Part(outer), Part(inner), Part(core)))


def two_domains(diameter_A: float, density: float = PROTEIN_DENSITY) -> Sum:
    """A large and a small ellipsoid that overlap at a tilt: a body without symmetry axis, plane or centre.

    The two are tilted in different planes, so there is no mirror plane; each has three unequal axes, so there
    is no rotation axis either.

    diameter_A : the whole body lies in a ball of this diameter.
    """
    as_positive(diameter_A, "diameter_A", "Å")
    d = diameter_A
    large = Spheroid((0.16 * d, 0.2 * d, 0.32 * d), density)
    small = Spheroid((0.1 * d, 0.22 * d, 0.14 * d), density)
    return Sum(
        (
            Part(Turned(large, _turn((0, 1, 0), 50)), 1.0, (0.0, 0.0, -0.18 * d)),
            Part(Turned(small, _turn((1, 0.3, 0.5), 65)), 1.0, (0.14 * d, 0.08 * d, 0.2273 * d)),
        )
    )


def _turn(axis: tuple[float, float, float], angle_deg: float) -> tuple[float, float, float, float]:
    w, x, y, z = from_axis_angle(axis, angle_deg).tolist()
    return w, x, y, z


def random_blobs(diameter_A: float, n_blobs: int, seed: int, density: float = PROTEIN_DENSITY) -> Structure:
    """Gaussian balls of unequal weight and width at random places: an object without any symmetry.

    Every ball lies within the diameter out to two standard deviations.  Together the balls have as many
    electrons as a quarter of a solid sphere of this diameter at ``density``.
    """
    as_positive(diameter_A, "diameter_A", "Å")
    for value, name, least in ((n_blobs, "n_blobs", 1), (seed, "seed", 0)):
        if value < least:
            raise OrienteerError(f"{name} must be a whole number of at least {least}, got {value}.")
    rng = np.random.default_rng(seed)
    sigmas = diameter_A * rng.uniform(0.05, 0.1, n_blobs)
    directions = rng.normal(size=(n_blobs, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    reach = diameter_A / 2 - 2 * sigmas
    positions = directions * (reach * rng.uniform(size=n_blobs) ** (1 / 3))[:, None]
    weights = rng.uniform(0.5, 1.5, n_blobs) * sigmas**3
    electrons = density * np.pi / 6 * diameter_A**3 / 4
    return blobs(positions, electrons * weights / weights.sum(), sigmas)


def named_body(
    name: str, diameter_A: float, density: float, axis_ratio: float, n_blobs: int, seed: int
) -> Particle:
    """The built-in body of that name, one of ``BODY_NAMES``."""
    if name not in _BODIES:
        raise OrienteerError(f"there is no built-in body '{name}'.", f"Built in are {', '.join(BODY_NAMES)}.")
    return _BODIES[name](diameter_A, density, axis_ratio, n_blobs, seed)


_BODIES: dict[str, Callable[[float, float, float, int, int], Particle]] = {
    "virus": lambda diameter, density, ratio, n, seed: virus(diameter, density),
    "icosahedron": lambda diameter, density, ratio, n, seed: icosahedron(diameter, density),
    "sphere": lambda diameter, density, ratio, n, seed: sphere(diameter / 2, density),
    "spheroid": lambda diameter, density, ratio, n, seed: Spheroid(
        (diameter / 2 * ratio, diameter / 2 * ratio, diameter / 2), density
    ),
    "core-shell": lambda diameter, density, ratio, n, seed: core_shell(
        [0.35 * diameter, 0.5 * diameter], [density / 2, density]
    ),
    "blobs": lambda diameter, density, ratio, n, seed: random_blobs(diameter, n, seed, density),
    "two-domain": lambda diameter, density, ratio, n, seed: two_domains(diameter, density),
}

BODY_NAMES = tuple(_BODIES)
