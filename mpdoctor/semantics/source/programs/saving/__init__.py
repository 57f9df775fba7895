"""Models that a program writes to files and loads again, and what it trains of them."""
