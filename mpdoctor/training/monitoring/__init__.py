"""A training whose loss scale is watched: what is read, when it is trouble, and the run file."""
