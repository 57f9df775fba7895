"""What a user's own training has recorded: run files of `mpdoctor.training.LossScaleMonitor`, read and never run."""
