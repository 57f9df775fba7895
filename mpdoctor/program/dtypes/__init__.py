"""Dtypes of symbolic values. Every function answers only where it is certain."""
