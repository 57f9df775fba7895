"""The user's fit(), shortened: its arguments, the batches it would have trained, and its end."""
