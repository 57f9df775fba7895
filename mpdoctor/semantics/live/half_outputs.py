"""How a live model's output can be computed in float32."""

from __future__ import annotations

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.knowledge.api_names import PROBABILITIES
from mpdoctor.knowledge.layer_kinds import HANDING_ON
from mpdoctor.semantics.source.layers.output_layers import KEEPING_DIGITS

MERGING = frozenset(("Add", "Average", "Maximum", "Minimum", "Subtract"))


def keeps_digits(layer: LayerFacts) -> bool:
    """Whether a cast after the layer serves as well."""
    is_plain = layer.settings.activation in KEEPING_DIGITS and layer.activation not in PROBABILITIES
    return layer.own_class or layer.is_model or is_plain


def help_for_output(model: ModelFacts, layer: LayerFacts) -> str:
    """The help for a live layer whose 16-bit result is an output of the model."""
    behind = f'`Activation("linear", dtype="float32")` after {"the model" if layer.made_by else "it"}.'
    if layer.is_operation:
        name = layer.class_name.lower()
        if name in PROBABILITIES:
            return f"Cast the input of `{name}` rather than its result: `tf.cast(…, tf.float32)`."
        return f"Put {behind}"
    if layer.compute_dtype == "float32":
        return f"{layer.path} is float32 itself: make float32 what its `call()` returns."
    if not layer.made_by and _has_no_numbers_of_its_own(model, layer):
        return _help_for_numbers_of_others(layer)
    if keeps_digits(layer):
        if _can_be_replaced(model, layer):
            in_float32 = f'`model.{layer.path} = {layer.class_name}(…, dtype="float32")`'
            return f"Put a float32 layer in its place before the model is trained, {in_float32}, or put {behind}"
        if layer.made_by:
            return f"Put {behind}"
        if _holds_half_layers(model, layer):
            return (
                f'Write `set_global_policy("float32")` before the line that makes {layer.path} and the mixed policy '
                f'again after it: `dtype="float32"` does not reach the layers in it.'
            )
        return f'Give {layer.path} `dtype="float32"`, or put {behind}'
    if layer.made_by:
        return _help_for_librarys_layer(layer)
    return (
        f'Give {layer.path} itself `dtype="float32"`: a cast after it cannot restore the digits that its '
        f"{layer.activation} has rounded away."
    )


def _has_no_numbers_of_its_own(model: ModelFacts, layer: LayerFacts) -> bool:
    """Whether a layer's output may be what other layers have computed, in their digits: without weights, it hands on
    its input or merges several."""
    if layer.variables or layer.is_model or model.inside(layer):
        return False
    is_plain = layer.class_name == "Activation" and layer.settings.activation == "linear"
    return layer.own_class or is_plain or layer.class_name in HANDING_ON | MERGING | {"Identity"}


def _help_for_numbers_of_others(layer: LayerFacts) -> str:
    """The help for such a layer: in float32 it still has the digits that it is given, and Keras 2 casts no input of an
    own layer but the first (tf.keras 2.15, Keras 3.15: 1165 different numbers of 2000, 2000 with both in float32)."""
    if layer.own_class:
        return (
            f'Give {layer.path} `dtype="float32"`, and if it hands on what it is given, the layer that computes that '
            "as well: no later cast restores the digits that it rounds away."
        )
    return (
        f'Give `dtype="float32"` to {layer.path} and to the layers before it, back to the layer that computes these '
        "numbers: no later cast restores the digits that it rounds away."
    )


def _can_be_replaced(model: ModelFacts, layer: LayerFacts) -> bool:
    """Whether it is an attribute of a library's model, so that its class may compute with another layer there. Keras 3
    takes no new layers once a model is built."""
    is_attribute = layer.path.isidentifier() and model.class_name not in ("Functional", "Sequential", "Model")
    return bool(layer.made_by) and is_attribute and not model.keras.is_keras3 and layer.class_name == "Dense"


def _holds_half_layers(model: ModelFacts, layer: LayerFacts) -> bool:
    """Whether a library's layer made layers that compute in 16 bits and were given no dtype: they take the global
    policy, whatever dtype their parent has."""
    inside = [inner for inner in model.inside(layer) if inner.has_trainable_weights and inner.made_by]
    took_policy = any(inner.compute_dtype in HALF and not inner.given_dtype for inner in inside)
    return took_policy and not layer.own_class and not layer.is_model


def _help_for_librarys_layer(layer: LayerFacts) -> str:
    """The help for a layer that the user did not make, and whose activation rounds its digits away."""
    activation, argument = layer.activation, layer.activation_argument
    maker = "The library" if layer.made_by == "__init__" else f"`{layer.made_by}`"
    without = f"pass it `{argument}=None`" if argument else f"if it can leave out its {activation}, have it do so"
    return (
        f'{maker} makes {layer.path}: {without}, and put `Activation("{activation}", dtype="float32")` after the '
        f"model. A cast after it cannot restore the digits that the {activation} has rounded away."
    )
