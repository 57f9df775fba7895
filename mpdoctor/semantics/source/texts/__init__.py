"""How the source is written: its syntax trees, and the text of its expressions, with the places in it."""
