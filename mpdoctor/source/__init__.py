"""Text → SourceFacts: parsing, names resolved to canonical API names, light data flow. No code of the user's is run.

`facts_from_text(text, path)`, `facts_from_file(path, shown_as)` and `facts_with_imports(path)` are the way in.
"""
