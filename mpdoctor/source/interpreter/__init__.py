"""A symbolic interpreter of Python: a program's statements and expressions → values and events. No code is run.

Every function takes the `State` first. `evaluate` (an expression) and `execute_block` (statements) find the function
for a node in `node_handlers`; the other files hold these functions by subject. A call of a function of the user's own
is inlined (`call_inlining`): its body is executed with the arguments at hand.
"""
