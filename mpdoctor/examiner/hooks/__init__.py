"""What is hooked into a Keras and TensorFlow the moment the program imports them."""
