"""What a program's source says, as symbolic values and events. No opinions."""
