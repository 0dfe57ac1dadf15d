"""A body in another orientation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orienteer.errors import OrienteerError
from orienteer.orientation.quaternion import normalise, to_matrix
from orienteer.particle.base import scattering_vectors
from orienteer.particle.bodies import Body


@dataclass(frozen=True)
class Turned(Body):
    """A body turned about the origin, r' = R r; its amplitude at q is that of the unturned body at Rᵀ q.

    quaternion : (w, x, y, z).

    >>> from orienteer.particle.bodies import Spheroid
    >>> upright = Turned(Spheroid((10.0, 20.0, 30.0)), (1.0, 0.0, 1.0, 0.0))  # a quarter turn: z to x
    >>> lying = Spheroid((30.0, 20.0, 10.0))
    >>> bool(np.allclose(upright.amplitude([0.01, 0.02, 0]), lying.amplitude([0.01, 0.02, 0])))
    True
    """

    body: Body
    quaternion: tuple[float, float, float, float]

    def __post_init__(self) -> None:
        if np.shape(self.quaternion) != (4,):
            raise OrienteerError(
                f"a body is turned by one quaternion, got {self.quaternion}.", "Give (w, x, y, z)."
            )
        normalise(self.quaternion)

    @property
    def radius_A(self) -> float:
        return self.body.radius_A

    def amplitude(self, q_inv_A: ArrayLike, photon_energy_eV: float | None = None) -> NDArray[np.complex128]:
        # Row vectors times R are Rᵀ q.
        return self.body.amplitude(
            scattering_vectors(q_inv_A) @ to_matrix(normalise(self.quaternion)), photon_energy_eV
        )
