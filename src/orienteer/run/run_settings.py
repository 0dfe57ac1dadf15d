"""The ``[run]`` section: the data of a run, how they are processed, and the folder of the run.

With this section one file defines a whole run, so that a batch job or a list of runs needs nothing else.
"""

from pathlib import Path
from typing import Literal

from pydantic import Field

from orienteer.compute.arrays import DeviceName
from orienteer.errors import SettingsError
from orienteer.settings.section import Section


class RunSettings(Section):
    """The options of the command line of ``orienteer reconstruct``, for a file that defines a whole run."""

    data: str = Field(default="", description="Patterns, in any known format.")
    out: str = Field(
        default="", description="Folder of the run; if empty, the name of this file without its ending."
    )
    method: Literal["emc", "mtip", "auto"] = Field(
        default="emc",
        description="How to reconstruct, with the settings of that name; auto chooses by the data.",
    )
    seed: int = Field(default=0, ge=0, description="Seed of every random draw.")
    device: DeviceName = Field(
        default="auto", description="Where to compute; auto takes the GPU when there is one."
    )
    geometry: str = Field(default="", description="File of the detector; if empty, the one in the data.")
    wavelength_A: float = Field(
        default=0.0, ge=0, description="Wavelength in angstrom; 0: what the data say."
    )
    distance_m: float = Field(
        default=0.0, ge=0, description="Detector distance in metres; 0: what the geometry says."
    )

    def folder(self, file: Path) -> Path:
        """The folder of the run that this settings file defines.

        >>> RunSettings().folder(Path("runs/r0042.toml"))
        PosixPath('runs/r0042')
        """
        folder = Path(self.out) if self.out else file.with_suffix("")
        if folder == file:
            raise SettingsError(
                f"{file}: the run needs a folder, but a settings file without an ending cannot name it.",
                'Write  out = "FOLDER"  under [run], or call the file NAME.toml.',
            )
        return folder

    def patterns(self, file: Path) -> Path:
        """The path of the data, which a file for a whole run has to name."""
        if not self.data:
            raise SettingsError(
                f"{file}: there are no data under [run].",
                'Write  data = "FRAMES"  there; relative paths count from the folder of the command.',
            )
        return Path(self.data)
