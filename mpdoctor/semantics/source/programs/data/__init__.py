"""What a program trains on: the data that it passes to Keras, and the contents of its arrays and tables."""
