"""The language server: diagnostics, pages of rules and fixes for the text that stands in an editor.

`checking` makes findings of a text, `positions`, `actions` and `pages` turn them into what the protocol speaks of;
none of them needs a library. `language_server` hands it all to pygls.
"""
