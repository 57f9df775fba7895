"""mpdoctor: a doctor for mixed-precision training in TensorFlow and Keras.

This module imports nothing: the examiner process makes the package visible to the user's interpreter, which
may be as old as Python 3.8 and has none of mpdoctor's dependencies.
"""

__version__ = "0.1.0"
