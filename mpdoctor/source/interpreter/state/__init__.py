"""The state of the interpreter: scopes, frames, modules, events so far, side effects."""
