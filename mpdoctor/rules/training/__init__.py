"""What a short training showed."""
