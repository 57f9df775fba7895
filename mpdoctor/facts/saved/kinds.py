"""The kinds of saved models: a .keras archive, an HDF5 file, a SavedModel directory."""

SAVED = ("keras-file", "hdf5-file", "saved-model")
