"""The commands of `mpdoctor`, one module each."""
