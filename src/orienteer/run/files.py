"""Names of the files of a run; :mod:`orienteer.run.directory` lists what is in them."""

DESCRIPTION, SETTINGS, DETECTOR = "run.json", "settings.toml", "detector.h5"
EVENTS = "events.jsonl"
INTENSITY_H5, INTENSITY_MRC, ORIENTATIONS = "intensity.h5", "intensity.mrc", "orientations.h5"
# Without the ending, because several models add a number.
LOOP_DENSITY = "density_loop"
VALIDATION, VALIDATION_DESCRIPTION = "validation", "validation.json"
REPORT, CHIMERAX_SCRIPT, PICTURE = "report.html", "open_in_chimerax.cxc", "density.png"
