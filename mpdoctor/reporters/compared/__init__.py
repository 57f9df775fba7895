"""Reports of a program under several policies: as text, Markdown, JSON, and HTML with the losses on one plot."""
