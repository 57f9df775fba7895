"""A mended or converted saved model for people: before and after side by side, which layers changed, what the new file
is now, how far its outputs moved, and what remains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mpdoctor.facts.saved.file import SAMPLES
from mpdoctor.facts.written_numbers import capitalized, count
from mpdoctor.mended_file import ChangedLayer, MendedFile, MovedOutput
from mpdoctor.reporters.mended.text import (
    BOLD,
    GREEN,
    MOST_NAMED,
    PLAIN,
    RED,
    before_and_after,
    remaining,
    what_remains,
    wrapped,
)
from mpdoctor.reporters.text.style import Style


def render(mended: MendedFile, *, width: int = 80, color: bool = False, blocks: bool = True) -> str:
    look = Style(width, blocks)
    headline = _headline(mended, look)
    if color:
        headline = f"{BOLD}{RED if mended.exit_code else GREEN}{headline}{PLAIN}"
    paragraphs = [
        [headline],
        list(before_and_after(mended.before, mended.after, look)) if mended.after else [],
        wrapped(_changes(mended, look), look),
        wrapped(_sentence_on_new_file(mended), look),
        wrapped(_outputs(mended, look), look),
        wrapped(_to_know(mended, look), look),
        wrapped(_not_changed(mended, look), look),
        wrapped(remaining(mended.last, look), look),
    ]
    return "\n".join("".join(f"{line}\n" for line in lines) for lines in paragraphs if lines)


def _headline(mended: MendedFile, look: Style) -> str:
    name, output = look.name(mended.before.targets[0].id, 60), look.name(mended.output, 60)
    left = what_remains(mended.last)
    remain = f" {capitalized(left)}." if left else ""
    if not mended.before.models:
        return f"{name} could not be loaded, so no file was written."
    if mended.after is None and mended.exit_code:
        return f"{name} is not mended: no layer in float32 helps, and no file was written.{remain}"
    if mended.after is None:
        under = f"its layers compute by {mended.policy} already" if mended.policy else "nothing to mend"
        return f"{name}: {under}, so no file was written."
    under = f" under {mended.policy}" if mended.policy else ""
    if mended.exit_code:
        return f"{output} is {name}{under}, and not healthy.{remain}"
    done = under or ", mended"
    return f"{output} is {name}{done}{', proved by training it' if mended.after and mended.after.probes else ''}."


# --- what changed -----------------------------------------------------------------------------------------------------
def _changes(mended: MendedFile, look: Style) -> Iterator[str]:
    if not mended.changed:
        return
    yield "Policies changed; the weights are the same:"
    pairs = dict.fromkeys((layer.before, layer.after) for layer in mended.changed)
    for before, after in pairs:
        layers = [layer for layer in mended.changed if (layer.before, layer.after) == (before, after)]
        named = look.listed([_layer_name(layer) for layer in layers], MOST_NAMED)
        yield f"  {before} {look.arrow} {after}, {count(len(layers), 'layer')}: {named}"
    if mended.healing and mended.policy:
        yield f"  float32 because of what was found: {look.listed(mended.healing, MOST_NAMED)}"


def _layer_name(layer: ChangedLayer) -> str:
    return layer.path or f"the model ({layer.class_name})"


def _sentence_on_new_file(mended: MendedFile) -> Iterator[str]:
    """What whoever serves or converts the file needs to know."""
    if mended.after is None:
        return
    layers = [layer for _, model in mended.after.models for layer in model.layers if layer.follows_policy]
    computing = Counter(layer.compute_dtype for layer in layers if not layer.is_model)
    variables = Counter(dtype for layer in layers for dtype, _, _ in layer.variables)
    held = ", ".join(f"{dtype} ({number})" for dtype, number in variables.most_common()) or "none"
    done = ", ".join(f"{count(number, 'layer')} in {dtype}" for dtype, number in computing.most_common())
    yield f"The new file computes {done}; its variables: {held}."


# --- how far the outputs moved ----------------------------------------------------------------------------------------
def _outputs(mended: MendedFile, look: Style) -> Iterator[str]:
    if mended.after is None:
        return
    if mended.not_compared:
        yield f"How far its outputs moved is not known: {look.name(mended.not_compared, 300)}."
        return
    yield f"Outputs of both files for the same {SAMPLES} made-up samples:"
    for output in mended.moved[:MOST_NAMED]:
        named = f"output {output.name}" if output.name.isdecimal() else look.name(output.name, 60)
        yield f"  {named}: {_movement_text(output)}"


def _movement_text(output: MovedOutput) -> str:
    dtypes = f" {output.dtype_before} before, {output.dtype_after} now." if _has_new_dtype(output) else ""
    if not output.compared:
        return f"{_not_finite(output)}, so there is nothing to compare.{dtypes}"
    beside = "" if output.compared == output.numbers else f" ({_not_finite(output)})"
    if not output.absolute:
        return f"the same{beside}.{dtypes}"
    return (
        f"they differ by {output.absolute:.3g} at most, {output.relative:.2g} of the largest magnitude{beside}.{dtypes}"
    )


def _has_new_dtype(output: MovedOutput) -> bool:
    return output.dtype_before != output.dtype_after


def _not_finite(output: MovedOutput) -> str:
    return (
        f"{output.not_finite_before} of {output.numbers} numbers were inf or NaN before, {output.not_finite_after} are "
        "now"
    )


# --- what whoever loads it has to know --------------------------------------------------------------------------------
def _to_know(mended: MendedFile, look: Style) -> Iterator[str]:
    if mended.after is None:
        return
    if not mended.after.probes:
        stage = mended.after.targets[0].stages.get("training")
        reason = look.name(stage.reason, 300) if stage is not None and stage.reason else "nothing could be measured"
        yield f"It was loaded and not trained: {reason}."
    if mended.weights_in_half:
        yield "Its weights were kept in 16 bits, and are as coarse as that in the new file: train it on to refine them."
    if mended.unwrapped:
        yield "Its optimizer lost the LossScaleOptimizer around it: no layer computes in float16."
    if mended.policy_to_set:
        yield (
            f'To train it on, call set_global_policy("{mended.policy_to_set}") before load_model(): only then does '
            "Keras put a LossScaleOptimizer around the optimizer in the file."
        )
    if mended.new_state:
        yield (
            "The state of its optimizer, where the file holds one, is not restored when it is loaded: Keras 3 keeps "
            "that of a LossScaleOptimizer in another order, and begins anew."
        )
    if mended.made_by_code and mended.policy:
        yield (
            f"{look.listed([f'`{path}`' for path in mended.made_by_code], MOST_NAMED)}: made by the code of their "
            f"class and not listed in the file. Where that code gives no dtype, they follow the global policy of the "
            f'program that loads it: set_global_policy("{mended.policy}") first.'
        )


def _not_changed(mended: MendedFile, look: Style) -> Iterator[str]:
    if mended.kept:
        yield "Left as they are:"
    for path, reason in mended.kept[:MOST_NAMED]:
        yield f"  {look.name(path or 'the model', 60)}: {look.name(reason, 200)}"
