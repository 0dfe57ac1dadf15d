"""Every section of settings, joined: what a settings file may hold."""

from pydantic import Field

from orienteer.calibration.settings import CalibrationSettings
from orienteer.cluster.settings import ClusterSettings
from orienteer.detector.settings import BeamSettings, DetectorSettings
from orienteer.hits.settings import HitSettings
from orienteer.mtip.settings import MtipSettings
from orienteer.particle.settings import ParticleSettings
from orienteer.phase.settings import PhaseSettings
from orienteer.reconstruction.settings import EmcSettings
from orienteer.run.live_settings import LiveSettings
from orienteer.run.online_settings import OnlineSettings
from orienteer.run.run_settings import RunSettings
from orienteer.run.validation_settings import ValidationSettings
from orienteer.settings.section import Section
from orienteer.simulation.settings import SimulateSettings


class Settings(Section):
    """The whole of a settings file; each field is a ``[section]``."""

    run: RunSettings = Field(
        RunSettings(), description="Data and folder, for a file that defines a whole run."
    )
    particle: ParticleSettings = Field(ParticleSettings(), description="What scatters.")
    beam: BeamSettings = Field(BeamSettings(), description="The X-ray pulses.")
    detector: DetectorSettings = Field(DetectorSettings(), description="Where the pixels are.")
    simulate: SimulateSettings = Field(SimulateSettings(), description="The simulated experiment.")
    calibration: CalibrationSettings = Field(
        CalibrationSettings(), description="From what a detector reads out to photons."
    )
    hits: HitSettings = Field(HitSettings(), description="Which shots have met a particle.")
    live: LiveSettings = Field(LiveSettings(), description="How a stream is received.")
    emc: EmcSettings = Field(EmcSettings(), description="Blind reconstruction of the intensity.")
    online: OnlineSettings = Field(
        OnlineSettings(), description="The same, while the data arrive; the engine is that of [emc]."
    )
    mtip: MtipSettings = Field(MtipSettings(), description="The same, with phasing inside the loop.")
    phase: PhaseSettings = Field(PhaseSettings(), description="From the intensity to the density.")
    validation: ValidationSettings = Field(ValidationSettings(), description="The test of a result.")
    cluster: ClusterSettings = Field(ClusterSettings(), description="What batch jobs ask for.")
