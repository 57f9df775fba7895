"""The words of reports for people as plain text: the terminal, Markdown and HTML share them."""
