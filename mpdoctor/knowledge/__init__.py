"""What TensorFlow and Keras do, by version, as data. Standard library, Python 3.8."""
