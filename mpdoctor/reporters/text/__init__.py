"""What reports for people say, as plain text: the terminal, Markdown and HTML say it alike."""
