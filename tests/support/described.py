"""Short texts for symbolic values and source facts, so that tests are tables."""

from __future__ import annotations

import textwrap

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, Instance, Parameter
from mpdoctor.program.values import Api, Attribute, Collection, Either, Item, Known, Value
from mpdoctor.source import facts_from_text

PRELUDE = """
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers, mixed_precision as mp
"""


def facts_of(snippet: str, prelude: str = PRELUDE) -> SourceFacts:
    facts = facts_from_text(prelude + textwrap.dedent(snippet), "train.py")
    assert facts.unreadable is None, facts.unreadable
    return facts


def shown(snippet: str) -> Value:
    """The value that the snippet's last `print(…)` is given."""
    prints = [call for call in facts_of(snippet).calls if call.method == "print"]
    return prints[-1].args[0]


def described(value: Value | None, depth: int = 6) -> str:
    """`tf.keras.optimizers.Adam(1e-3).lr` is "Adam(0.001).lr"."""
    if value is None or depth == 0:
        return "…"
    match value:
        case Known():
            return repr(value.value)
        case Api():
            return public_name(value.name).rpartition(".")[2]
        case Parameter():
            return f"${value.name}"
        case Attribute():
            return f"{described(value.of, depth - 1)}.{value.name}"
        case Item():
            index = "" if value.index is None else described(value.index, depth - 1)
            return f"{described(value.of, depth - 1)}[{index}]"
        case Operation():
            parts = [described(operand, depth - 1) for operand in value.operands]
            return f"({value.operator}{parts[0]})" if len(parts) == 1 else f"({f' {value.operator} '.join(parts)})"
        case Either():
            return " | ".join(sorted(described(option, depth - 1) for option in value.options))
        case Collection():
            items = [described(item, depth - 1) for item in value.items]
            if value.kind == "dict":
                items = [f"{described(key, depth - 1)}: {item}" for key, item in zip(value.keys, items, strict=True)]
            return f"{value.kind}[{', '.join([*items, *(['…'] if value.open else [])])}]"
        case Defined():
            return value.of.name
        case Instance():
            return f"self:{value.of.name}"
        case Call():
            given = [described(argument, depth - 1) for argument in value.args]
            given += [f"{name}={described(argument, depth - 1)}" for name, argument in value.keywords]
            return f"{described(value.callee, depth - 1)}({', '.join([*given, *(['…'] if value.open else [])])})"
    return "?"
