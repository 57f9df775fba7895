"""From an exception to FailureFacts: its line, its own message without wrapping, and its cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpdoctor.examiner.exceptions import chain_of, first_line
from mpdoctor.examiner.failures.failure import failure_from_exception
from mpdoctor.examiner.failures.library_frames import inside_from_frames
from mpdoctor.examiner.failures.parts import _function_of_pipeline
from mpdoctor.examiner.process.user_code import is_own
from mpdoctor.facts.failure import FailureFacts, Frame
from mpdoctor.facts.location import Location

pytestmark = pytest.mark.fast

KERAS3, TF_KERAS = "site-packages/keras/src/", "site-packages/tf_keras/src/"
KERAS215, KERAS210, TF24 = "site-packages/keras/src/", "site-packages/keras/", "site-packages/tensorflow/python/keras/"
OWN, OPERATION = "train.py:loss", "site-packages/tensorflow/python/ops/math_ops.py:add"
# (id, frames from the outermost to the innermost, what was going on)
TABLE = [
    ("nothing", [], ""),
    ("a-script", ["train.py:<module>", OPERATION], ""),
    ("a-library", ["train.py:<module>", "site-packages/pandas/core/frame.py:__call__"], ""),
    ("call-3", ["train.py:<module>", f"{KERAS3}layers/layer.py:__call__", "train.py:call", OPERATION], "layer"),
    (
        "call-tf_keras",
        [
            f"{TF_KERAS}engine/training.py:train_step",
            f"{TF_KERAS}engine/base_layer.py:__call__",
            "train.py:call",
            OPERATION,
        ],
        "layer",
    ),
    ("call-2.4", [f"{TF24}engine/base_layer.py:__call__", "train.py:helper", OPERATION], "layer"),
    ("layer's-own-work", [f"{KERAS3}layers/layer.py:build_wrapper", "train.py:build"], ""),
    (
        "loss-3",
        [
            f"{KERAS3}trainers/trainer.py:_compute_loss",
            f"{KERAS3}trainers/compile_utils.py:call",
            f"{KERAS3}losses/loss.py:__call__",
            OWN,
            OPERATION,
        ],
        "loss",
    ),
    ("loss-tf_keras", [f"{TF_KERAS}engine/compile_utils.py:__call__", f"{TF_KERAS}losses.py:call", OWN], "loss"),
    ("loss-2.10", [f"{KERAS210}engine/compile_utils.py:__call__", f"{KERAS210}losses.py:call", OWN], "loss"),
    (
        "layer-in-a-loss",
        [f"{KERAS3}losses/loss.py:__call__", OWN, f"{KERAS3}layers/layer.py:__call__", OPERATION],
        "layer",
    ),
    (
        "loss-in-a-layer",
        [f"{KERAS3}layers/layer.py:__call__", "train.py:call", f"{KERAS3}losses/losses.py:mse"],
        "loss",
    ),
    (
        "metric-of-a-loss",
        [
            f"{KERAS3}trainers/compile_utils.py:update_state",
            f"{KERAS3}metrics/metric.py:__call__",
            f"{KERAS3}losses/losses.py:mse",
            OPERATION,
        ],
        "metric",
    ),
    ("metric-2.15", [f"{KERAS215}metrics/base_metric.py:decorated", "train.py:update_state"], "metric"),
    ("metric-2.4", [f"{TF24}utils/metrics_utils.py:decorated", "train.py:update_state"], "metric"),
    (
        "optimizer-3",
        [f"{KERAS3}trainers/trainer.py:train_step", f"{KERAS3}optimizers/base_optimizer.py:apply"],
        "optimizer",
    ),
    ("optimizer-2.4", [f"{TF24}optimizer_v2/optimizer_v2.py:apply_gradients", OPERATION], "optimizer"),
    ("scaling-3", [f"{KERAS3}optimizers/loss_scale_optimizer.py:scale_loss", OPERATION], "loss scaling"),
    ("scaling-2.4", [f"{TF24}mixed_precision/loss_scale_optimizer.py:__init__"], "loss scaling"),
    (
        "inside-the-wrapper",
        [f"{KERAS3}optimizers/loss_scale_optimizer.py:apply", f"{KERAS3}optimizers/adam.py:build"],
        "optimizer",
    ),
    (
        "sum-of-losses-3",
        [
            f"{KERAS3}backend/tensorflow/trainer.py:train_step",
            f"{KERAS3}trainers/trainer.py:_compute_loss",
            f"{KERAS3}ops/numpy.py:sum",
            OPERATION,
        ],
        "total loss",
    ),
    ("sum-of-losses-2", [f"{TF_KERAS}engine/training.py:compute_loss", OPERATION], "total loss"),
    (
        "own-sum-of-losses-3",
        [
            f"{KERAS3}backend/tensorflow/trainer.py:train_step",
            f"{KERAS3}trainers/trainer.py:_compute_loss",
            "train.py:compute_loss",
            OPERATION,
        ],
        "step",
    ),
    (
        "own-sum-of-losses-calls-Keras'",
        [
            f"{KERAS3}trainers/trainer.py:_compute_loss",
            "train.py:compute_loss",
            f"{KERAS3}trainers/trainer.py:compute_loss",
            OPERATION,
        ],
        "total loss",
    ),
    (
        "compute_loss-of-a-layer",
        [f"{KERAS3}layers/layer.py:__call__", "train.py:call", "train.py:compute_loss", OPERATION],
        "layer",
    ),
    ("own-step", [f"{KERAS3}backend/tensorflow/trainer.py:one_step_on_data", "train.py:train_step", OPERATION], "step"),
    (
        "pipeline",
        ["train.py:<module>", "site-packages/tensorflow/python/data/ops/map_op.py:_map", "train.py:parse"],
        "data",
    ),
    (
        "model-in-a-pipeline",
        [
            "site-packages/tensorflow/python/data/ops/map_op.py:_map",
            f"{KERAS3}layers/layer.py:__call__",
            "train.py:call",
        ],
        "layer",
    ),
    ("own-file-named-so", ["losses.py:mine", OPERATION], ""),
    ("other-package", ["site-packages/keras_cv/src/losses/focal.py:call", OPERATION], ""),
]


def frames(told: list[str]) -> list[Frame]:
    parted = [text.rpartition(":") for text in told]
    return [Frame(f"/lib/{path}", 7, name, "", "site-packages" not in path) for path, _, name in parted]


@pytest.mark.parametrize(("told", "inside"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_frames_tell_what_was_going_on(told: list[str], inside: str) -> None:
    assert inside_from_frames(frames(told)) == inside


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("train.py", True),
        ("h5py/_objects.pyx", False),
        ("/a/site-packages/keras/src/losses.py", False),
        ("<string>", False),
    ],
)
def test_whose_file_it_is(path: str, own: bool) -> None:
    assert is_own(path) is own


def failed(tmp_path: Path, text: str) -> FailureFacts:
    path = tmp_path / "train.py"
    path.write_text(text, encoding="utf-8")
    try:
        exec(compile(text, str(path), "exec"), {})
    except Exception as error:
        return failure_from_exception(error, "script")
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    ("text", "by_program"),
    [
        ("raise ValueError('float16')", True),
        ("def check(x):\n    raise ValueError(\n        'float16'\n    )\ncheck(1)", True),
        ("assert False, 'float16'", True),
        ("try:\n    int('x')\nexcept ValueError as error:\n    raise TypeError('float16') from error", True),
        ("import json\njson.loads('{')", False),
        ("int('x')", False),
        ("try:\n    int('x')\nexcept ValueError:\n    {}['y']", False),
    ],
)
def test_the_words_of_the_program_are_not_a_librarys(tmp_path: Path, text: str, by_program: bool) -> None:
    failure = failed(tmp_path, text)
    assert failure.raised_by_program is by_program
    assert failure.said_by_library == ("" if by_program else failure.message)


def test_the_line_and_the_function_that_failed(tmp_path: Path) -> None:
    failure = failed(tmp_path, "def width(x):\n    return int(x)\n\nwidth('a')")
    assert failure.location == Location(str(tmp_path / "train.py"), 2)
    assert (failure.failing_line, failure.failing_function) == ("return int(x)", "width")


def test_an_error_is_made_from_what_it_says_and_not_from_what_was_handled() -> None:
    first, second, third = ValueError("first"), ValueError("second"), ValueError("third")
    second.__cause__ = first
    third.__context__ = second
    assert list(chain_of(second)) == [second, first]
    assert list(chain_of(third)) == [third]
    second.ag_error_metadata = object()  # type: ignore[attr-defined]  # autograph's mark
    assert list(chain_of(third)) == [third, second, first]


@pytest.mark.parametrize("kind", [Exception, BaseException])
def test_an_exception_whose_text_raises_is_told_without_it(kind: type[BaseException]) -> None:
    class Odd(kind):  # type: ignore[misc,valid-type]
        def __str__(self) -> str:
            raise self

    assert failure_from_exception(Odd(), "script").message == "(its text cannot be shown: Odd)"
    assert first_line(Odd()) == "Odd: (its text cannot be shown: Odd)"
    assert _function_of_pipeline(Odd(), []) is None
