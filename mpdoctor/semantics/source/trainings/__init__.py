"""What a program trains, with which outputs and losses, and the models that it writes to files and loads again."""
