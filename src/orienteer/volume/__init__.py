"""3D arrays with a voxel size, and the MRC and HDF5 files they travel in."""
