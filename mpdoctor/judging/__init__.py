"""Turns findings into what is reported: primary findings, suppressions, order, excerpts."""
