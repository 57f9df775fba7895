"""The protocol between parent and examiner: the request, and the events."""
