"""The names that Dragonfly's settings have here; see also docs/how-to/from-dragonfly.md."""

import re

PAGE = "The page Come from Dragonfly of the documentation (docs/how-to/from-dragonfly.md) lists them all."
# Sections of Dragonfly's configuration that Orienteer does not have.
_SECTIONS = {
    "parameters": "[detector] and [beam] hold these here; [run] distance_m and wavelength_A for data.",
    "make_densities": "orienteer simulate takes the structure itself; its settings are in [particle].",
    "make_intensities": "orienteer simulate takes the structure itself; its settings are in [particle].",
    "make_detector": "[detector] describes it here.",
    "make_data": "[simulate] and [beam] describe it here.",
}
_DATA = "Data are the first argument of orienteer reconstruct, or [run] data."
_GEOMETRY = "Give the detector by --geometry, or by [run] geometry."
_GRIDS = "Orienteer makes its grids of orientations; [emc] level is that of the finest, as num_div."
_TEMPERATURE = "There is no such setting here: the temperature is chosen automatically."
_RADIUS = "There is no such setting here: the resolution improves by itself, up to [emc] resolution_A."
_OUT = "Give the folder of a run by --out, or by [run] out; the log is events.jsonl in it."
_SCALING = "That is [emc] fluence here; auto decides by the photon numbers."
_SYMMETRY = 'That is [emc] symmetry here, such as "I", "O" or "C5".'
_START = "There is no such setting here: a run starts at random, or from the map of a live run with --from."
_KEYS = {
    "detd": "That is [detector] distance_m here, in metres.",
    "lambda": "That is [beam] wavelength_A here; --wavelength-A or [run] wavelength_A for data.",
    "detsize": "That is [detector] pixels here.",
    "pixsize": "That is [detector] pixel_size_m here, in metres.",
    "stoprad": "That is [detector] beam_stop_radius_pixels here.",
    "polarization": "That is [beam] polarisation here.",
    "ewald_rad": "There is no such setting here: the voxel size follows from [emc] oversampling.",
    "num_data": "That is [simulate] frames here.",
    "mean_count": "That is [simulate] photons_per_frame here.",
    "gamma_fluence": "That is [simulate] fluence_jitter here, a relative standard deviation.",
    "do_gamma": "That is [simulate] fluence_jitter here, a relative standard deviation.",
    "in_photons_file": _DATA,
    "in_photons_list": f"{_DATA} One file holds all frames.",
    "in_detector_file": _GEOMETRY,
    "in_detector_list": f"{_GEOMETRY} All frames have the same detector.",
    "output_folder": _OUT,
    "log_file": _OUT,
    "num_div": "That is [emc] level here; 0 chooses it by the data.",
    "in_quat_file": _GRIDS,
    "num_rot": _GRIDS,
    "num_modes": 'That is [emc] models here; "auto" takes as many as the data distinguish.',
    "num_nonrot_modes": "That is [emc] junk_classes here; reject_junk leaves out what does not fit.",
    "need_scaling": _SCALING,
    "update_scale": _SCALING,
    "scale_file": f"{_SCALING} It starts from the photon numbers.",
    "bgscale_file": "There is no such setting here; [emc] background_file holds photons per pixel and shot.",
    "background_list": "All frames have the same background here: [emc] background_file.",
    "start_model_file": _START,
    "probs_file": _START,
    "alpha": "There is no such setting here: models are not mixed with older ones.",
    "beta": _TEMPERATURE,
    "beta_factor": _TEMPERATURE,
    "beta_schedule": _TEMPERATURE,
    "radius": _RADIUS,
    "radius_schedule": _RADIUS,
    "gaussian_sigma": 'Write  likelihood = "gaussian"  here; its width is estimated.',
    "point_group": _SYMMETRY,
    "axial_sym": _SYMMETRY,
    "icosahedral": _SYMMETRY,
    "sym_icosahedral": _SYMMETRY,
    "sym_octahedral": _SYMMETRY,
    "friedel_sym": "There is no such setting here: intensities always have Friedel symmetry.",
    "recon_type": "Reconstructions are in 3D here; for 2D classes call classify in Python.",
    "blacklist_file": "Leave frames out with --exclude, which takes a file that the web page writes.",
    "selection": "Here the two halves of the frames are always kept apart; see orienteer validate.",
    "save_prob": "There is none here: orientations.h5 has the best pose of each frame and its confidence.",
    "fixed_seed": "That is --seed here, or [run] seed; every run has one.",
    "size": "There is no such setting here: the edge of the volume follows from the data.",
    "num_threads": "There is no such setting here: all cores available to the process are used.",
}
# Names that may mean something else outside [emc].
_COMMON = frozenset({"alpha", "beta", "radius", "selection", "size"})
_HEADER = re.compile(rf"^\s*\[\s*({'|'.join(_SECTIONS)})\s*\]", re.MULTILINE)


def called_here(name: str, section: str = "") -> str:
    """What Dragonfly's setting or section of this name is called here; empty if Dragonfly has none.

    section : the section that contains the name.

    >>> called_here("num_div", "emc")
    'That is [emc] level here; 0 chooses it by the data.'
    >>> called_here("radius", "particle")
    ''
    """
    if not section and name in _SECTIONS:
        return f"Dragonfly's [{name}]? {_SECTIONS[name]}"
    return "" if name in _COMMON and section not in ("emc", "mtip") else _KEYS.get(name, "")


def is_of_dragonfly(text: str) -> bool:
    """Whether a text is a configuration of Dragonfly: whether it has a section that only Dragonfly has.

    >>> is_of_dragonfly("[parameters]\\ndetd = 738"), is_of_dragonfly("[emc]\\nlevel = 6")
    (True, False)
    """
    return _HEADER.search(text) is not None
