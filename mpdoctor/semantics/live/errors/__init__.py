"""What an exception of a program means, by what TensorFlow and Keras say in it."""
