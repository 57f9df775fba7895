"""The parent's end of the examiner process: starts it, reads its events, collects facts."""
