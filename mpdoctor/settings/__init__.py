"""What one run was asked to do: options of the command line and [tool.mpdoctor]."""
