"""`--from-run`: reads the failing batch that LossScaleMonitor saved beside a run file, and trains on it first."""
