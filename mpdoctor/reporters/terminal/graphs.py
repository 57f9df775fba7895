"""A saved graph that was inspected, not trained: its inputs, outputs and compute dtypes."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.text import Text

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.saved.graph import SavedGraphFacts, SignatureFacts, TensorSpecFacts
from mpdoctor.facts.written_numbers import count
from mpdoctor.finding import Diagnosis
from mpdoctor.knowledge.op_lists import EVER_ALLOWED, EVER_DENIED
from mpdoctor.reporters.terminal.style import Paragraph, Style, indented, line

MOST_SIGNATURES = 3
MOST_TENSORS = 4
MOST_OPS = 6
DTYPES = (*HALF, "float32", "float64")


def paragraphs_from_graphs(diagnosis: Diagnosis, look: Style) -> list[Paragraph]:
    return [paragraph_from_graph(graph, look) for _, graph in diagnosis.graphs]


def paragraph_from_graph(graph: SavedGraphFacts, look: Style) -> Paragraph:
    saved_by = f"saved by TensorFlow {look.name(graph.saved_by, 20)}" if graph.saved_by else ""
    lines: Paragraph = [
        Text.assemble(("Graph", "bold"), f" of {look.name(graph.path, 50)}", overflow="fold"),
        indented(Text(look.dot.join(filter(None, [count(graph.nodes, "operation"), saved_by])), style="dim")),
        *_signatures(graph.signatures, look),
        line("variables", _variables(graph, look)),
    ]
    for label, names in (("allow list", EVER_ALLOWED), ("deny list", EVER_DENIED)):
        for number, text in enumerate(_ops(graph, names, look)):
            lines.append(line("" if number else label, text))
    if graph.casts:
        casts = (f"{look.name(c.source, 12)} {look.arrow} {look.name(c.target, 12)} {c.count}" for c in graph.casts)
        lines.append(line("casts", ", ".join(casts)))
    return lines


def _signatures(signatures: tuple[SignatureFacts, ...], look: Style) -> Iterable[RenderableType]:
    """A line per signature; those with the same inputs and outputs share one."""
    by_text: dict[str, list[str]] = {}
    for signature in signatures:
        takes, gives = (_tensors(tensors, look) for tensors in (signature.inputs, signature.outputs))
        by_text.setdefault(f"{takes} {look.arrow} {gives}", []).append(look.name(signature.name, 30))
    if not by_text:
        yield line("signatures", "none: its functions were inspected")
    for text, names in list(by_text.items())[:MOST_SIGNATURES]:
        yield line("signature" if len(names) == 1 else "signatures", f"{', '.join(names)}: {text}")
    left = len(by_text) - MOST_SIGNATURES
    if left > 0:
        yield line("", f"{look.more} {count(left, 'more signature')}")


def _tensors(tensors: tuple[TensorSpecFacts, ...], look: Style) -> str:
    shown = [_tensor(tensor, look) for tensor in tensors[:MOST_TENSORS]]
    left = len(tensors) - len(shown)
    return ", ".join(shown + ([f"{left} more"] if left else [])) or "nothing"


def _tensor(tensor: TensorSpecFacts, look: Style) -> str:
    sizes = "" if tensor.shape is None else f" ({', '.join('?' if n is None else str(n) for n in tensor.shape)})"
    return f"{look.name(tensor.name, 30)} {look.name(tensor.dtype, 12)}{sizes}"


def _variables(graph: SavedGraphFacts, look: Style) -> str:
    if not graph.variables:
        return "none"
    sizes: dict[str, list[int]] = {}
    for variable in graph.variables:
        sizes.setdefault(look.name(variable.dtype, 12), []).append(variable.size)
    return ", ".join(f"{len(own)} in {dtype} ({count(sum(own), 'number')})" for dtype, own in sorted(sizes.items()))


def _ops(graph: SavedGraphFacts, names: frozenset[str], look: Style) -> Iterable[str]:
    """A line per dtype with the operations that compute in it."""
    for dtype in DTYPES:
        ops = sorted(graph.ops_in(dtype, names), key=lambda op: -op.count)
        shown = [f"{op.op} {op.count}" for op in ops[:MOST_OPS]]
        if len(ops) > MOST_OPS:
            shown.append(f"{look.more} {count(len(ops) - MOST_OPS, 'more kind')}")
        if ops:
            yield f"{dtype}: {', '.join(shown)}"
