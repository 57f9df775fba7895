"""What a program's source means for precision."""
