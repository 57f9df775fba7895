"""The other process: it runs in the user's own interpreter, captures the training call and trains a few steps.

Standard library and the user's TensorFlow only, Python 3.8 syntax. `start.py` is what the parent starts; `main.py`
reads from top to bottom what happens. The modules of `keras/` alone know a Keras; they hold no
opinions.
"""
