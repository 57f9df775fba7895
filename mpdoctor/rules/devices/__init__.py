"""What 16-bit numbers bring on the device at hand."""
