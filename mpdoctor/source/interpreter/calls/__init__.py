"""What a call gives: of the program's own functions and classes, of builtins, of functions that call functions."""
