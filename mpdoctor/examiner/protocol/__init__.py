"""What parent and examiner say to each other: the request, and the events."""
