"""Mending: a program examined, edited in memory and examined again, until nothing at warning or above remains or no
edit helps; then every edit that was not needed is dropped.

`layered_text` is a text whose edits can be left out again, `draft` all files of a program with the edits made so far,
`proposals` what a diagnosis proposes, `policy_switch` the edits that switch a program to another policy, `health` what
makes one diagnosis better than another, `rounds` the loop and what of it is dropped, `examining` the examinations.

Of a saved model a new file is written: `saved_policies` and `saved_optimizers` change its configuration, `saved_copies`
writes it, `saved_files` is the loop, `moved_outputs` compares what both files put out.
"""
