"""Names of the files that phasing writes."""

DENSITY_MRC, DENSITY_H5, SUPPORT, DESCRIPTION = "density.mrc", "density.h5", "support.mrc", "phasing.json"
