"""The behaviour of TensorFlow and Keras by version, as data. Standard library, Python 3.8."""
