"""A SavedModel graph computes operations in 16 bits that TensorFlow's own mixed-precision rewrite keeps in float32.

## Why it matters
The rewrite has a deny list of operations whose results leave float16's range, or lose too many digits, for
ordinary inputs: Exp, Expm1, Pow, Sum, Mean, L2Loss and the cross-entropies; for bfloat16 the same list without
Sum and Mean. In float16 Exp is inf above 11.09, and a Sum or a Pow above 65504. Exp, Expm1, Pow, Sum and L2Loss
are a warning where their result is used without a cast. They are advice where the result is cast to float32, or
cannot leave the range because of how it is computed (`exp(x - max(x))`, a sum over probabilities or a mask). A
Mean is always advice.

## Flagged
```python
import tensorflow as tf


class Energy(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec((None, 8), tf.float16)])
    def __call__(self, x):
        return tf.reduce_sum(tf.square(x), axis=-1)


tf.saved_model.save(Energy(), "exported")
```

## Fixed
```python
import tensorflow as tf


class Energy(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec((None, 8), tf.float16)])
    def __call__(self, x):
        return tf.reduce_sum(tf.square(tf.cast(x, tf.float32)), axis=-1)


tf.saved_model.save(Energy(), "exported")
```

## Versions
All. The lists come from TensorFlow 2.21.0 (auto_mixed_precision_lists.h).

## Where users met it
No report was found; the lists come from TensorFlow's own developers.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.saved.graph import OpFacts, SavedGraphFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.op_lists import DENY
from mpdoctor.semantics.wording import listed

SEVERITY = Severity.INFO
# How each operation overflows in float16 on inputs that are ordinary in float32.
OVERFLOWS = {
    "Exp": "Exp is inf above 11.09",
    "Expm1": "Expm1 is inf above 11.09",
    "Pow": "Pow is inf where the result passes 65504",
    "Sum": "Sum is inf where the total passes 65504",
    "L2Loss": "L2Loss is inf where half the sum of squares passes 65504",
}
# bfloat16 has float32's range and 8 bits of a number.
ROUNDS = "a bfloat16 result has 2 to 3 digits, and Exp and Pow amplify the rounding error of their input"
SAVING = "SaveV2"  # saving is not part of the computation; MP705 reports the saved variables


def in_saved_graph(graph: SavedGraphFacts) -> Iterator[Finding]:
    for dtype in HALF:
        denied = [op for op in graph.ops_in(dtype, DENY[dtype]) if op.op != SAVING]
        risky = [op for op in denied if op.op in OVERFLOWS and _unguarded(op)]
        if risky:
            yield _warning(risky, dtype)
        advised = [op for op in denied if op not in risky]
        if advised:
            yield _advice(advised, dtype)


def _unguarded(op: OpFacts) -> int:
    return op.count - op.widened - op.limited


def _warning(ops: list[OpFacts], dtype: str) -> Finding:
    why = "; ".join(OVERFLOWS[op.op] for op in ops) if dtype == "float16" else ROUNDS
    names = listed([f"{op.op} ({_examples(op, _unguarded(op))})" for op in ops])
    return Finding(
        f"This graph computes {names} in {dtype}, and nothing casts the result to float32: {why}. TensorFlow's own "
        "rewrite keeps them in float32.",
        "Cast their input to float32 in the code that was saved, `tf.cast(x, tf.float32)`, or give the layer "
        'dtype="float32", and save it again.',
        layer=ops[0].examples[0] if ops[0].examples else None,
        severity=Severity.WARNING,
        evidence=_evidence(ops, dtype),
    )


def _advice(ops: list[OpFacts], dtype: str) -> Finding:
    names = listed([f"{op.op} ({_examples(op, op.count)})" for op in ops])
    return Finding(
        f"This graph computes {names} in {dtype}, which TensorFlow's own rewrite keeps in float32.",
        "Compare its outputs with those of the float32 model on your own inputs. Where they differ, give the layer "
        'dtype="float32" and save it again.',
        evidence=_evidence(ops, dtype),
    )


def _examples(op: OpFacts, count: int) -> str:
    """ "3: `encoder/exp`, `decoder/exp` …"."""
    shown = [f"`{name}`" for name in op.examples[: min(count, 2)]]
    return f"{count}: {', '.join(shown)}{' …' if count > len(shown) else ''}"


def _evidence(ops: list[OpFacts], dtype: str) -> dict[str, object]:
    return {
        "dtype": dtype,
        "ops": {op.op: {"count": op.count, "cast up": op.widened, "limited": op.limited} for op in ops},
    }
