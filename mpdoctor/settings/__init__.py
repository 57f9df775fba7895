"""The settings of one run: options of the command line and [tool.mpdoctor]."""
