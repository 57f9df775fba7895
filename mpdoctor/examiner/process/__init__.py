"""The examiner as a process in the user's environment: supervision, imports, patches, devices."""
