"""The meaning of a program's exception, by the messages of TensorFlow and Keras."""
