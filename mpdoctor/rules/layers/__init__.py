"""Layers: what they compute in, and what meets what inside them."""
