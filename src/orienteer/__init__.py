"""Orienteer: 3D structures from diffraction snapshots of particles in unknown orientations.

The public names below load on first use, so that ``import orienteer`` is quick and needs no GPU, no MPI
and no display.

>>> import orienteer
>>> orienteer.Beam(photon_energy_eV=4600).wavelength_A  # doctest: +ELLIPSIS
2.695...
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from orienteer.compute.kernel_folder import give_kernels_a_folder as _give_kernels_a_folder

__version__ = "0.1.0.dev0"

# Public name -> the module that defines it; module:name if it has a shorter name there.
_HOME = {
    "Beam": "orienteer.detector.beam",
    "Detector": "orienteer.detector.detector",
    "EmcSettings": "orienteer.reconstruction.settings",
    "Experiment": "orienteer.simulation.experiment",
    "OrienteerError": "orienteer.errors",
    "Panel": "orienteer.detector.panel",
    "Patterns": "orienteer.source.patterns",
    "PhaseSettings": "orienteer.phase.settings",
    "Phasing": "orienteer.phase.result",
    "PixelUse": "orienteer.detector.masks",
    "Run": "orienteer.run.run",
    "SimulateSettings": "orienteer.simulation.settings",
    "Source": "orienteer.source.base",
    "ValidationSettings": "orienteer.run.validation_settings",
    "Volume": "orienteer.volume.volume",
    "compare_volumes": "orienteer.compare.comparison:compare",
    "make_grid": "orienteer.orientation.grids",
    "open": "orienteer.source.opening",
    "open_detector": "orienteer.detector.opening",
    "open_structure": "orienteer.particle.opening",
    "open_volume": "orienteer.volume.opening",
    "phase_intensity": "orienteer.phase.phasing:phase",
    "show": "orienteer.plot.showing",
    "simulate": "orienteer.simulation.experiment",
    "square_detector": "orienteer.detector.square",
    "validate_run": "orienteer.validate.validation:validate",
    "write_report": "orienteer.report.page",
    "write_volume": "orienteer.volume.opening",
    "writer_for": "orienteer.source.opening",
}

__all__ = [*_HOME, "__version__"]

if TYPE_CHECKING:
    from orienteer.compare.comparison import compare as _compare
    from orienteer.detector.beam import Beam as Beam
    from orienteer.detector.detector import Detector as Detector
    from orienteer.detector.masks import PixelUse as PixelUse
    from orienteer.detector.opening import open_detector as open_detector
    from orienteer.detector.panel import Panel as Panel
    from orienteer.detector.square import square_detector as square_detector
    from orienteer.errors import OrienteerError as OrienteerError
    from orienteer.orientation.grids import make_grid as make_grid
    from orienteer.particle.opening import open_structure as open_structure
    from orienteer.phase.phasing import phase as _phase
    from orienteer.phase.result import Phasing as Phasing
    from orienteer.phase.settings import PhaseSettings as PhaseSettings
    from orienteer.plot.showing import show as show
    from orienteer.reconstruction.settings import EmcSettings as EmcSettings
    from orienteer.report.page import write_report as write_report
    from orienteer.run.run import Run as Run
    from orienteer.run.validation_settings import ValidationSettings as ValidationSettings
    from orienteer.simulation.experiment import Experiment as Experiment
    from orienteer.simulation.experiment import simulate as simulate
    from orienteer.simulation.settings import SimulateSettings as SimulateSettings
    from orienteer.source.base import Source as Source
    from orienteer.source.opening import open as open
    from orienteer.source.opening import writer_for as writer_for
    from orienteer.source.patterns import Patterns as Patterns
    from orienteer.validate.validation import validate as _validate
    from orienteer.volume.opening import open_volume as open_volume
    from orienteer.volume.opening import write_volume as write_volume
    from orienteer.volume.volume import Volume as Volume

    compare_volumes, phase_intensity, validate_run = _compare, _phase, _validate

_give_kernels_a_folder()  # before numba is loaded, which reads the folder only once


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'orienteer' has no attribute {name!r}")
    module, _, own_name = _HOME[name].partition(":")
    return getattr(import_module(module), own_name or name)


def __dir__() -> list[str]:
    return sorted(__all__)
