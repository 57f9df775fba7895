"""Measures the time of training steps between blocks of steps, with nothing else between the steps of a block."""

from __future__ import annotations

import math
import time
from typing import Callable

WARM_UP = 5  # steps: the first ones trace the graph, and start what is started once
SHORTEST_BLOCK = 0.02  # seconds, so that waiting for the device at its end counts for little
LARGEST_BLOCK = 10  # steps


class StepClock:
    """Called at the beginning and at the end of each step.

    wanted
        How many steps to time, after the WARM_UP ones.
    budget
        Seconds, counted from the end of the first step.
    wait
        Returns when the device has done what it was given.
    blocks
        (seconds a step, of these the seconds between two steps) of each block."""

    def __init__(
        self,
        wanted: int,
        budget: float,
        wait: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._wanted, self._budget, self._wait, self._clock = wanted, budget, wait, clock
        self.blocks: list[tuple[float, float]] = []
        self.steps_a_block = 0
        self._steps = self._in_block = 0
        self._shortest = float("inf")  # of the warm-up's steps
        self._first_end = self._block_began = self._last_end = self._between = 0.0

    def step_begins(self) -> None:
        self._between += self._clock() - self._last_end

    def step_ends(self) -> None:
        self._steps += 1
        if self._steps <= WARM_UP:
            self._warms_up()
            return
        self._in_block += 1
        if self._in_block == self.steps_a_block:
            self._wait()
            took = self._clock() - self._block_began
            self.blocks.append((took / self._in_block, self._between / self._in_block))
            self._begin_block()
        else:
            self._last_end = self._clock()

    @property
    def has_enough(self) -> bool:
        if not self.blocks:
            return False
        return len(self.blocks) * self.steps_a_block >= self._wanted or self._is_spent

    @property
    def _is_spent(self) -> bool:
        return self._clock() - self._first_end > self._budget

    def _warms_up(self) -> None:
        self._wait()
        now = self._clock()
        took, self._last_end = now - self._last_end, now
        if self._steps == 1:
            self._first_end = now
        else:
            self._shortest = min(self._shortest, max(took, 1e-6))
        if self._steps == WARM_UP or self._is_spent:
            self._steps = WARM_UP
            self.steps_a_block = max(min(math.ceil(SHORTEST_BLOCK / self._shortest), LARGEST_BLOCK, self._wanted), 1)
            self._begin_block()

    def _begin_block(self) -> None:
        self._in_block, self._between = 0, 0.0
        self._block_began = self._last_end = self._clock()
