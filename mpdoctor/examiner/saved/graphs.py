"""From the protocol buffer of a SavedModel to SavedGraphFacts. Nothing is loaded and nothing is run."""

from __future__ import annotations

from collections import Counter
from typing import AbstractSet as Set
from typing import Any, Iterator, NamedTuple

import tensorflow as tf

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.saved.directories import EXPORT_AGAIN
from mpdoctor.examiner.saved.graph_flow import OUTERMOST, GraphFlow, Place, dtype_name, dtype_of
from mpdoctor.examiner.saved.graph_ranges import SAME_NUMBERS, Ranges
from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.saved.graph import (
    CastFacts,
    OpFacts,
    SavedGraphFacts,
    SavedVariableFacts,
    SignatureFacts,
    TensorSpecFacts,
)
from mpdoctor.knowledge.op_lists import EVER_ALLOWED

FLOATING = (*HALF, "float32", "float64")
WIDE = ("float32", "float64")
# They hand numbers on and compute none.
BOOKKEEPING = frozenset(
    ["Const", "Identity", "IdentityN", "Placeholder", "ReadVariableOp", "VarHandleOp", "VariableV2", "NoOp", "Cast"]
)
VARIABLES = frozenset(["VarHandleOp", "VariableV2", "Variable"])
# What they give is known without the numbers that they are given.
SHAPES_ONLY = ("Shape", "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike")
INITIALIZER = "__saved_model_init_op"
EXAMPLES = 3
MOST_DIMENSIONS = 254  # of a tensor of TensorFlow's
LARGEST_EXPONENT = 11.09  # exp() of more is inf in float16
LARGEST_SUMMAND = 1.0
PRODUCTS = ("Mul", "MulNoNan")


def graph_facts_from_proto(meta_graph: tf.compat.v1.MetaGraphDef, path: str, because: str) -> SavedGraphFacts:
    flow = GraphFlow(meta_graph.graph_def)
    signatures = {n: s for n, s in meta_graph.signature_def.items() if n != INITIALIZER}
    reached = flow.before(_outputs(flow, meta_graph, signatures.values()))
    nodes = {place: flow.nodes[place] for place in flow.nodes if place in reached}
    return SavedGraphFacts(
        path=path,
        because=because,
        saved_by=meta_graph.meta_info_def.tensorflow_version,
        tags=tuple(meta_graph.meta_info_def.tags),
        signatures=tuple(_signature(name, signatures[name]) for name in sorted(signatures)),
        variables=tuple(_variables(nodes)) or tuple(_variables_of_objects(meta_graph)),
        ops=tuple(_ops(flow, nodes, _inputs(flow, meta_graph, signatures.values()))),
        casts=tuple(_casts(nodes)),
        nodes=len(nodes),
    )


def _outputs(flow: GraphFlow, meta_graph: tf.compat.v1.MetaGraphDef, signatures: Any) -> list[Place]:
    """What the signatures give; where there is none, what the functions give that the program saved."""
    named = [
        flow.tensor(output.name) for signature in signatures for output in signature.outputs.values() if output.name
    ]
    sparse = (output.coo_sparse for signature in signatures for output in signature.outputs.values())
    named += [flow.tensor(tensor.values_tensor_name) for tensor in sparse if tensor.values_tensor_name]
    functions = [] if named else sorted(meta_graph.object_graph_def.concrete_functions)
    return named + [place for function in functions for place in flow.results(function)]


def _inputs(flow: GraphFlow, meta_graph: tf.compat.v1.MetaGraphDef, signatures: Any) -> list[Place]:
    named = [flow.tensor(given.name) for signature in signatures for given in signature.inputs.values() if given.name]
    functions = [] if named else sorted(meta_graph.object_graph_def.concrete_functions)
    return named + [place for function in functions for place in flow.arguments(function)]


# --- signatures and variables ---------------------------------------------------------------------------------------
def _signature(name: str, signature: Any) -> SignatureFacts:
    return SignatureFacts(
        name,
        tuple(_spec(key, signature.inputs[key]) for key in sorted(signature.inputs)),
        tuple(_spec(key, signature.outputs[key]) for key in sorted(signature.outputs)),
    )


def _spec(name: str, tensor: tf.Tensor) -> TensorSpecFacts:
    dtype = dtype_name(tensor.dtype) if tensor.dtype else ""
    shape = tensor.tensor_shape
    sizes = (
        None
        if shape.unknown_rank
        else tuple(None if dimension.size < 0 else int(dimension.size) for dimension in shape.dim)
    )
    return TensorSpecFacts(name, dtype, sizes)


def _variables(nodes: dict[Place, tf.compat.v1.NodeDef]) -> Iterator[SavedVariableFacts]:
    for place, node in nodes.items():
        if place[0] == OUTERMOST and node.op in VARIABLES:
            name = node.attr["shared_name"].s.decode("utf-8", "replace") if "shared_name" in node.attr else ""
            yield SavedVariableFacts(name or node.name, dtype_of(node, "dtype"), _size(node.attr["shape"].shape))


def _variables_of_objects(meta_graph: tf.compat.v1.MetaGraphDef) -> Iterator[SavedVariableFacts]:
    for node in meta_graph.object_graph_def.nodes:
        if node.WhichOneof("kind") == "variable":
            dtype = dtype_name(node.variable.dtype)
            yield SavedVariableFacts(node.variable.name, dtype, _size(node.variable.shape))


def _size(shape: Any) -> int:
    count = 1
    if len(shape.dim) > MOST_DIMENSIONS:
        raise Unusable(f"The graph is damaged: it names a shape of {len(shape.dim):,} dimensions. {EXPORT_AGAIN}")
    for dimension in shape.dim:
        count *= max(int(dimension.size), 0)
    return count


# --- operations -----------------------------------------------------------------------------------------------------
class Reach(NamedTuple):
    """Which places of a graph depend on which. `allowed` are operations that TensorFlow's own rewrite would run in
    16 bits, such as matrix products."""

    from_inputs: Set[Place]
    varying: Set[Place]  # from the inputs or the variables
    before_allowed: Set[Place]
    after_half: Set[Place]  # after an allowed one that is in 16 bits

    def is_inner(self, place: Place) -> bool:
        """Whether it depends on the inputs and comes before an allowed operation, or after none that is in 16 bits."""
        return place in self.from_inputs and (place in self.before_allowed or place not in self.after_half)


def _reach(flow: GraphFlow, nodes: dict[Place, tf.compat.v1.NodeDef], inputs: list[Place]) -> Reach:
    from_inputs = flow.after(inputs, SHAPES_ONLY)
    allowed = [place for place, node in nodes.items() if node.op in EVER_ALLOWED]
    return Reach(
        from_inputs,
        varying=from_inputs | flow.after([p for p, n in nodes.items() if n.op in VARIABLES], SHAPES_ONLY),
        before_allowed=flow.before(before for place in allowed for before in flow.inputs.get(place, ())),
        after_half=flow.after(place for place in allowed if dtype_of(nodes[place], "T") in HALF),
    )


def _places_by_op(nodes: dict[Place, tf.compat.v1.NodeDef]) -> dict[tuple[str, str], list[Place]]:
    """The places of each (operation, floating-point dtype) that computes something."""
    places: dict[tuple[str, str], list[Place]] = {}
    for place, node in nodes.items():
        dtype = dtype_of(node, "T", "dtype", "Tparams")
        if dtype in FLOATING and node.op not in BOOKKEEPING:
            places.setdefault((node.op, dtype), []).append(place)
    return places


def _ops(flow: GraphFlow, nodes: dict[Place, Any], inputs: list[Place]) -> Iterator[OpFacts]:
    reach, ranges = _reach(flow, nodes, inputs), Ranges(flow)
    for (op, dtype), places in sorted(_places_by_op(nodes).items()):
        in_half = places if dtype in HALF else []
        widened = _widened(flow, in_half, nodes)
        limited = {p for p in in_half if p not in reach.varying or _is_limited(flow, ranges, p)}
        worst_first = sorted(places, key=lambda p: (p in widened or p in limited, str(p[1])))
        yield OpFacts(
            op=op,
            dtype=dtype,
            count=len(places),
            widened=len(widened),
            limited=len(limited - widened),
            inner=sum(map(reach.is_inner, places)),
            examples=tuple(str(place[1]) for place in worst_first[:EXAMPLES]),
        )


def _widened(flow: GraphFlow, places: list[Place], nodes: dict[Place, tf.compat.v1.NodeDef]) -> set[Place]:
    """Those of these places whose result is only used after a cast to float32."""
    ends = {place for place in (*flow.users, *flow.inputs) if place in nodes or place not in flow.nodes}
    casts = {p for p in ends if flow.op(p) == "Cast" and dtype_of(flow.nodes[p], "DstT") in WIDE}
    through = {p for p in ends - casts if (flow.op(p) in SAME_NUMBERS or not flow.op(p)) and flow.users.get(p)}
    before_others = flow.before_through(ends - casts - through, through)
    before_casts = flow.before_through(casts, through)
    return {place for place in places if place in before_casts and place not in before_others}


def _is_limited(flow: GraphFlow, ranges: Ranges, place: Place) -> bool:
    """Whether the result stays within float16's range, as far as a graph can tell."""
    op, inputs = flow.op(place), flow.inputs.get(place, [])
    if not inputs:
        return False
    low, high = ranges.of(inputs[0])
    if op in ("Exp", "Expm1"):
        return high <= LARGEST_EXPONENT
    if op == "Sum":
        small = low >= -LARGEST_SUMMAND and high <= LARGEST_SUMMAND
        return small or _is_weighted(flow, ranges, ranges.origin(inputs[0]))
    if op == "Pow":
        exponent = ranges.of(inputs[1]) if len(inputs) > 1 else (0.0, 0.0)
        return low >= 0 and high <= 1 and exponent[0] >= 0
    return False


def _is_weighted(flow: GraphFlow, ranges: Ranges, summands: Place | None) -> bool:
    """Whether what is added up is numbers times probabilities, or small numbers times weights: no more than a matrix
    product of the same would be. (Numbers times a mask may be anything.)"""
    if summands is None or flow.op(summands) not in PRODUCTS:
        return False
    factors = flow.inputs.get(summands, [])
    made_by = [flow.op(origin) for origin in map(ranges.origin, factors) if origin is not None]
    if "Softmax" in made_by:
        return True
    bounds = [ranges.of(factor) for factor in factors]
    return "ReadVariableOp" in made_by and any(low >= -1 and high <= 1 for low, high in bounds)


def _casts(nodes: dict[Place, tf.compat.v1.NodeDef]) -> Iterator[CastFacts]:
    counted: Counter[tuple[str, str]] = Counter()
    for node in nodes.values():
        if node.op == "Cast":
            counted[(dtype_of(node, "SrcT"), dtype_of(node, "DstT"))] += 1
    for (source, target), count in sorted(counted.items()):
        if source in FLOATING and target in FLOATING and source != target:
            yield CastFacts(source, target, count)
