"""One program under several policies: a check under each, then its step timed in rounds that alternate between them.

Both go through the examination that `check` uses; nothing of the program is edited.
"""
