"""The target and the project around it: files, environments, requested versions."""
