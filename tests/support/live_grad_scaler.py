"""torch's GradScaler and mpdoctor.training's LossScaleOptimizer, driven with the same finite and non-finite steps.

`python tests/support/live_grad_scaler.py --sequences 20 --seed 1` prints what differed, as a JSON list: sequence, step,
and (scale, whether the step was applied) of both. It needs torch and TensorFlow.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf
import torch

from mpdoctor.training import LossScaleOptimizer

sys.modules["triton"] = None  # that of torch 2.14 ends a process in which TensorFlow 2.21 is loaded; torch does without

LENGTH = 50
# Powers of 2 to begin with: far from the floor, and some so large that the scale would grow past the largest float32.
SCALES = (*range(55, 66), 125, 126, 127)


def of_torch(scale: float, growth_interval: int, gradients: list[float]) -> list[tuple[float, bool]]:
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=growth_interval)
    scaler.scale(torch.zeros(1))  # makes its tensors
    seen = []
    for gradient in gradients:
        before = weight.item()
        weight.grad = torch.tensor([gradient]) * scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        seen.append((scaler.get_scale(), weight.item() != before))
    return seen


def of_ours(scale: float, growth_interval: int, gradients: list[float]) -> list[tuple[float, bool]]:
    weight = tf.Variable([0.0])
    optimizer = LossScaleOptimizer(
        tf.keras.optimizers.SGD(1.0), initial_scale=scale, dynamic_growth_steps=growth_interval
    )
    seen = []
    for gradient in gradients:
        before = float(weight[0])
        given = optimizer.get_unscaled_gradients([tf.constant([gradient]) * optimizer.loss_scale])
        optimizer.apply_gradients([(given[0], weight)])
        seen.append((float(optimizer.loss_scale), float(weight[0]) != before))
    return seen


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sequences", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    differing = []
    for number in range(given.seed, given.seed + given.sequences):
        rng = random.Random(number)
        bad = float(rng.choice(["inf", "-inf", "nan"]))
        gradients = [bad if rng.random() < 0.2 else 0.5 for _ in range(LENGTH)]
        case = (2.0 ** rng.choice(SCALES), rng.randint(1, 8), gradients)
        for step, (theirs, ours) in enumerate(zip(of_torch(*case), of_ours(*case), strict=True)):
            if theirs != ours:
                differing.append([number, step, theirs, ours])
                break
    print("\n" + json.dumps(differing))


if __name__ == "__main__":
    main()
