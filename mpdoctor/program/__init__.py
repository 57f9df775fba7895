"""The contents of a program's source as symbolic values and events, without judgement."""
