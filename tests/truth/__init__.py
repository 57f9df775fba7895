"""Random training scripts whose truth is known by construction, plain Keras that is watched, and mpdoctor beside it.

python -m tests.truth run RESULTS.jsonl --seed N --scripts N   run more scripts, a line of results for each
python -m tests.truth table RESULTS.jsonl ...                  the counts, as docs/measurements.md shows them
python -m tests.truth show SEED NUMBER                         one script, as a text that runs alone
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))  # where pytest finds it by pyproject.toml
