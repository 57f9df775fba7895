"""What the interpreter knows at one point of a program: scopes, frames, modules, events so far, side effects."""
