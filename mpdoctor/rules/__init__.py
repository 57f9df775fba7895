"""The rules, one file each: functions from facts to findings. A file is named after its rule, and its docstring is the
rule's documentation."""
