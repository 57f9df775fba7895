"""From a seed and a number to a script: the number decides its kind, both together everything else."""

from __future__ import annotations

from random import Random

from . import bodies, diseases, loops
from .writing import (
    BFLOAT16,
    FLOAT16,
    KERAS3,
    MODEL_STYLES,
    TF_KERAS,
    TRAININGS,
    Program,
    Script,
    Truth,
    text_from_program,
)

HEALTHY, RIGHT, BFLOAT = "healthy", "right", "bfloat16"
DEFAULT_STEPS = 50
OWN_STEPS = (56, 64, 120, 320)


def kinds() -> list[tuple[str, str]]:
    """(kind, "" or which twin of it), shuffled: any stretch of it holds healthy and sick ones."""
    sick = [(name, "") for name in (*diseases.DISEASES, *loops.WRONG)]
    twins = [(name, RIGHT) for name in (*diseases.DISEASES, *loops.WRONG)]
    twins += [(name, BFLOAT) for name, (_, heals) in diseases.DISEASES.items() if heals]
    healthy = [(body, HEALTHY) for body in (*bodies.BODIES, *bodies.BODIES)]
    mixed = [*sick, *twins, *healthy]
    Random("kinds").shuffle(mixed)
    return mixed


KINDS = kinds()


def script_from_seed(seed: int, number: int) -> Script:
    kind, twin = KINDS[(number + seed) % len(KINDS)]
    random = Random(f"truth {seed} {number}")
    keras = random.choice((KERAS3, TF_KERAS))
    if kind in loops.WRONG and keras not in loops.WRONG[kind][1]:
        keras = loops.WRONG[kind][1][0]
    program = Program(random, keras, BFLOAT16 if twin == BFLOAT else FLOAT16)
    program.batch, program.batches = random.choice((16, 32)), random.choice((8, 10, 16))
    program.steps = random.choice(OWN_STEPS)
    program.style, program.training = random.choice(MODEL_STYLES), random.choice(TRAININGS)
    truth = _built(program, kind, twin)
    if program.training == "eager":
        program.steps = min(program.steps, 120)  # every operation of it is run from Python
    steps = program.steps if program.steps == OWN_STEPS[-1] and random.random() < 0.3 else DEFAULT_STEPS
    style = f"{program.style}, {program.training}"
    named = kind if twin in ("", HEALTHY) else f"{kind}_{twin}"
    return Script(seed, number, keras, text_from_program(program), truth, steps, named, style, twin)


def _built(program: Program, kind: str, twin: str) -> Truth:
    if twin == HEALTHY:
        if program.random.random() < 0.15:
            program.policy = BFLOAT16
        bodies.BODIES[kind](program)
        bodies.head(program)
        bodies.optimizer(program)
        return Truth()
    if kind in loops.WRONG:
        return loops.wrong_loop(program, kind, twin == RIGHT)
    truth = diseases.DISEASES[kind][0](program, twin == RIGHT)
    return Truth() if twin == BFLOAT else truth
