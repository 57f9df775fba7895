"""The examination itself: what could not be read, loaded or finished."""
