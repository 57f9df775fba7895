"""Layers and models as the source makes them: in which order, with which weights, and in which dtype they compute."""
