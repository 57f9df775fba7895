"""What commands show beside reports: rules, custom loops, settings."""
