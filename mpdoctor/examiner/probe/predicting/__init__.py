"""What a program that does not train computes with its models, watched."""
