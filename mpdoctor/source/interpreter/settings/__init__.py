"""The settings of programs: dataclasses, enumerations, command-line arguments."""
