"""One rule, one file. The file's name is the rule's code and name, its docstring is the rule's documentation."""
