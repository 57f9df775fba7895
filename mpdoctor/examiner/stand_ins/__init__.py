"""What takes the place of data and weights that cannot be had."""
