"""What the user pointed at, and the project around it: files, environments, the versions it asks for."""
