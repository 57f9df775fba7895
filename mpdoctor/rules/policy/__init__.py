"""Policies and the API around them."""
