"""3D arrays with a voxel size, and their MRC and HDF5 files."""
