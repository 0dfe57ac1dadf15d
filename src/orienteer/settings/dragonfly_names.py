"""What Dragonfly's settings are called here; the page "Come from Dragonfly" of the documents tells more."""

import re

PAGE = "The page Come from Dragonfly of the documentation (docs/how-to/from-dragonfly.md) tells them all."
# Sections of its configuration that we have not.
_SECTIONS = {
    "parameters": "[detector] and [beam] hold these here; [run] distance_m and wavelength_A for data.",
    "make_densities": "orienteer simulate takes the structure itself; its settings stand in [particle].",
    "make_intensities": "orienteer simulate takes the structure itself; its settings stand in [particle].",
    "make_detector": "[detector] describes it here.",
    "make_data": "[simulate] and [beam] describe it here.",
}
_DATA = "Data are the first word of orienteer reconstruct, or [run] data."
_GEOMETRY = "The detector is given by --geometry, or by [run] geometry."
_GRIDS = "Grids of orientations are made here; [emc] level is the finest, as num_div."
_TEMPERATURE = "There is none here: the temperature sets itself."
_RADIUS = "There is none here: the resolution grows by itself, up to [emc] resolution_A."
_OUT = "The folder of a run is given by --out, or by [run] out; its log is events.jsonl there."
_SCALING = "That is [emc] fluence here; auto looks at the photon numbers."
_SYMMETRY = 'That is [emc] symmetry here, such as "I", "O" or "C5".'
_START = "There is none here: a run begins at random, or with the map of a live run by --from."
_KEYS = {
    "detd": "That is [detector] distance_m here, in metres.",
    "lambda": "That is [beam] wavelength_A here; --wavelength-A or [run] wavelength_A for data.",
    "detsize": "That is [detector] pixels here.",
    "pixsize": "That is [detector] pixel_size_m here, in metres.",
    "stoprad": "That is [detector] beam_stop_radius_pixels here.",
    "polarization": "That is [beam] polarisation here.",
    "ewald_rad": "There is none here: the size of a voxel follows from [emc] oversampling.",
    "num_data": "That is [simulate] frames here.",
    "mean_count": "That is [simulate] photons_per_frame here.",
    "gamma_fluence": "That is [simulate] fluence_jitter here, a relative standard deviation.",
    "do_gamma": "That is [simulate] fluence_jitter here, a relative standard deviation.",
    "in_photons_file": _DATA,
    "in_photons_list": f"{_DATA} One file holds all frames.",
    "in_detector_file": _GEOMETRY,
    "in_detector_list": f"{_GEOMETRY} One detector serves all frames.",
    "output_folder": _OUT,
    "log_file": _OUT,
    "num_div": "That is [emc] level here; 0 chooses it by the data.",
    "in_quat_file": _GRIDS,
    "num_rot": _GRIDS,
    "num_modes": 'That is [emc] models here; "auto" takes as many as the data tell apart.',
    "num_nonrot_modes": "That is [emc] junk_classes here; reject_junk leaves out what does not fit.",
    "need_scaling": _SCALING,
    "update_scale": _SCALING,
    "scale_file": f"{_SCALING} It begins from the photon numbers.",
    "bgscale_file": "There is none here; [emc] background_file holds the photons per pixel and shot.",
    "background_list": "One file serves all frames here: [emc] background_file.",
    "start_model_file": _START,
    "probs_file": _START,
    "alpha": "There is none here: models are not mixed with older ones.",
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
    "friedel_sym": "There is none here: intensities always have it.",
    "recon_type": "Reconstructions are in 3D here; classes in the plane are made from Python (classify).",
    "blacklist_file": "Frames are left out by --exclude, a file that the web page makes.",
    "selection": "Halves of the frames are always told apart here; see orienteer validate.",
    "save_prob": "There is none here: orientations.h5 has the best pose of each frame, and how sure it is.",
    "fixed_seed": "That is --seed here, or [run] seed; every run has one.",
    "size": "There is none here: the edge of the volume follows from the data.",
    "num_threads": "There is none here: all cores that may be used are.",
}
# Words that may mean something else outside of [emc].
_COMMON = frozenset({"alpha", "beta", "radius", "selection", "size"})
_HEADER = re.compile(rf"^\s*\[\s*({'|'.join(_SECTIONS)})\s*\]", re.MULTILINE)


def called_here(name: str, section: str = "") -> str:
    """What Dragonfly's setting or section of this name is here; empty where it has none of this name.

    section : in which the name stands.

    >>> called_here("num_div", "emc")
    'That is [emc] level here; 0 chooses it by the data.'
    >>> called_here("radius", "particle")
    ''
    """
    if not section and name in _SECTIONS:
        return f"Dragonfly's [{name}]? {_SECTIONS[name]}"
    return "" if name in _COMMON and section not in ("emc", "mtip") else _KEYS.get(name, "")


def is_of_dragonfly(text: str) -> bool:
    """Whether a text is a configuration of Dragonfly, by a section that only it has.

    >>> is_of_dragonfly("[parameters]\\ndetd = 738"), is_of_dragonfly("[emc]\\nlevel = 6")
    (True, False)
    """
    return _HEADER.search(text) is not None
