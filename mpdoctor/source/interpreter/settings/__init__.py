"""What programs keep their settings in: dataclasses, enumerations, arguments of the command line."""
