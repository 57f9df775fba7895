"""Control flow: branches, loops, `try` and `with`, and what is bound where their paths meet."""
