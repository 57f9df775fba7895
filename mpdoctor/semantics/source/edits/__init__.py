"""Edits of the source that mend a finding, made of places and of the text that stands there.

Facts know where each expression begins and ends; tokens tell its parts, so that nothing else of a line is touched. An
edit that cannot be had (the text lies in another file, a comment would be lost) is None, and a fix with such an edit is
none.
"""
