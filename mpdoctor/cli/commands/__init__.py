"""One module a command of `mpdoctor`."""
