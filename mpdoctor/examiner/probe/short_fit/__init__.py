"""A fit() of the user's, shortened: what it is given, how many batches it would have trained, and how it ends."""
