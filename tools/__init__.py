"""Tools for whoever changes mpdoctor: `python -m tools.new_rule`, `python -m tools.readme`."""
