"""The path of the file with the batch that failed in a recorded training."""

from __future__ import annotations

from pathlib import Path

from mpdoctor.recorded.run_reader import NotARunFile, Read, series_from_files


def batch_of_run(run: Path, read: Read) -> Path:
    """The file with the batch that was kept beside a run file; of several the last. Raises OSError and NotARunFile."""
    kept = [event.kept for series in series_from_files(run, read) for event in series.events if event.kept]
    if not kept:
        raise NotARunFile(
            "names no batch that was kept: LossScaleMonitor(keep_batch=True) keeps one that fails for good."
        )
    if Path(kept[-1]).name != kept[-1] or not (run.parent / kept[-1]).is_file():
        raise NotARunFile(f"names the batch {kept[-1]!r}, and no such file lies beside it.")
    return (run.parent / kept[-1]).resolve()
