"""The behaviour of TensorFlow and Keras by version, as data, and idioms of Python. Standard library, Python 3.8."""
