"""What a saved file may name and hold, as explicit lists: all else is refused."""
