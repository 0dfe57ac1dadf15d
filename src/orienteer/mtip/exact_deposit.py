"""Merged slices as normal equations without a grid in between, by non-uniform transforms.

The grid of a deposit interpolates between voxels; the loop corrects that from generation to generation.  Here
every pixel of every slice counts exactly where it lies, which takes several times as long.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu
from orienteer.compute.ranks.comm import Comm
from orienteer.mtip.normal_equations import NormalEquations
from orienteer.mtip.relative_grid import RelativeGrid
from orienteer.reconstruction.orienting.deposit import Deposit
from orienteer.reconstruction.stopwatch import part
from orienteer.slicing.patches import PointPatches

# Points that are gathered before they are transformed: each transform costs as much as a million points.
_POINTS_AT_ONCE = {"cpu": 2**22, "cuda": 2**26}
# Relative error of the sums.
_TOLERANCE = 1e-4


@dataclass(eq=False)
class ExactSums:
    """Sums of the slices of one model.

    points_inv_A : (P, 3) float64, scattering vectors of the pixels.
    counted : (P,) float64, share of its photons that each pixel counts with, so that none is too bright.
    turns : (G, 3, 3) float64, symmetry of the particle.
    """

    grid: RelativeGrid
    points_inv_A: Array
    counted: Array
    turns: Array
    _waiting: list[tuple[Array, Array, Array]] = field(default_factory=list)
    _equations: NormalEquations | None = None

    def add(self, matrices: Array, photons: Array, exposure: Array) -> None:
        """Add slices of these matrices (T, 3, 3): merged photons (T, P), and those the envelope predicts."""
        self._waiting.append((matrices, photons, exposure))
        limit = _POINTS_AT_ONCE["cuda" if is_on_gpu(photons) else "cpu"]
        if sum(each[1].size for each in self._waiting) * len(self.turns) >= limit:
            self._transform()

    def finish(self) -> NormalEquations:
        """The normal equations of all that was added."""
        self._transform()
        return self._sums

    def join(self, comm: Comm) -> None:
        """Add up the sums of all ranks."""
        self._equations = self.finish().summed(comm)

    @property
    def _sums(self) -> NormalEquations:
        if self._equations is None:
            return NormalEquations.empty(self.grid.n, self.grid.voxel_A, self.grid.device)
        return self._equations

    def _transform(self) -> None:
        if not self._waiting:
            return
        xp = array_namespace(self.points_inv_A)
        parts: Iterable[tuple[Array, ...]] = zip(*self._waiting, strict=True)
        matrices, photons, exposure = (xp.concatenate(each) for each in parts)
        self._waiting.clear()
        seen = exposure > 0
        relative = xp.where(seen, photons / xp.where(seen, exposure, 1), 0)
        weights = exposure * self.counted / len(self.turns)
        for turn in self.turns:
            self._equations = self._sums.with_frames(
                relative, self.points_inv_A, xp.matmul(turn, matrices.astype(xp.float64)), weights=weights,
                tolerance=_TOLERANCE, precision="single",
            )  # fmt: skip


@dataclass(eq=False)
class ExactDeposit(Deposit):
    """A deposit that also keeps exact sums of each model."""

    exact: list[ExactSums] = field(default_factory=list)

    def with_model(self, other: Deposit, model: int) -> "ExactDeposit":
        """With one more model, whose sums are those of ``model`` in another deposit."""
        assert isinstance(other, ExactDeposit)
        whole = super().with_model(other, model)
        assert isinstance(whole, ExactDeposit)
        return replace(whole, exact=[*self.exact, other.exact[model]])

    def of_model(self, model: int) -> "ExactDeposit":
        """As of :class:`Deposit`."""
        own = super().of_model(model)
        assert isinstance(own, ExactDeposit)
        return replace(own, exact=[self.exact[model]])

    def add(
        self, model: int, points: PointPatches, matrices: Array, values: Array, row_weights: Array,
        pixel_weights: Array, by_pixel: bool, weights: Array | None = None,
    ) -> None:  # fmt: skip
        """As of :class:`Deposit`."""
        xp = array_namespace(values)
        with part("insert"):
            used = xp.flatnonzero(row_weights > 0)
            photons = (values.T if by_pixel else values)[used].astype(xp.float64)
            if weights is None:
                exposure = row_weights[used].astype(xp.float64)[:, None] * pixel_weights
            else:
                exposure = (weights.T if by_pixel else weights)[used].astype(xp.float64)
            if len(used):
                self.exact[model].add(matrices[used], photons, xp.maximum(exposure, 0))
        super().add(model, points, matrices, values, row_weights, pixel_weights, by_pixel, weights)

    def join(self, comm: Comm) -> None:
        """As of :class:`Deposit`."""
        super().join(comm)
        for sums in self.exact:
            sums.join(comm)
