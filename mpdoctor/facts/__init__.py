"""Evidence, before any judgement: frozen, plain, serialisable data, shared by both processes.

Standard library only, Python 3.8 syntax and library: the examiner runs in the user's own interpreter.
"""
