"""What each Keras needs of an optimizer that a LossScaleOptimizer wraps."""

from __future__ import annotations

from collections.abc import Iterable

from mpdoctor.facts.versions import Keras
from mpdoctor.knowledge.wrapper_delegation import CLASSIC, KERAS3, NEW
from mpdoctor.program.user_definitions import ClassFacts, Defined
from mpdoctor.program.values import Api, options

# Any of these in the user's class means that it applies gradients its own way; nothing is then missing for certain.
OWN_WAY_KERAS3 = ("apply", "stateless_apply", "_backend_update_step", "_backend_apply_gradients")
OWN_WAY_KERAS2 = ("apply_gradients",)
DUCK_NEEDS = ("apply", "build")
# What each wrapper hands to the inner optimizer's `apply_gradients`: TensorFlow 2.4, 2.10 and 2.15, tf_keras 2.21.
HANDED_TO_APPLY = {
    CLASSIC: ("name", "experimental_aggregate_gradients"),
    NEW: ("skip_gradients_aggregation",),
    KERAS3: (),
}
BASES = (
    "keras.optimizers.Optimizer",
    "keras.optimizers.legacy.Optimizer",
    "keras.optimizers.experimental.Optimizer",
)


def lacked_by_class(own: ClassFacts, keras: Keras) -> list[str]:
    """The methods that a class of the user's lacks to be wrapped: ["Optimizer"] if it is no Keras optimizer at all;
    [] where nothing is missing, or where one of its bases is not known."""
    bases = [option for cls in own.lineage() for base in cls.bases for option in options(base)]
    if any(not isinstance(base, (Api, Defined)) for base in bases):
        return []
    library = [base for base in bases if isinstance(base, Api) and base.name != "builtins.object"]
    if not library:
        return [] if _passes_for_optimizer(own, keras) else ["Optimizer"]
    if not all(base.is_(*BASES) and base.name.endswith(".Optimizer") for base in library):
        return []
    wanted = _wanted(library, keras)
    own_way = OWN_WAY_KERAS3 if keras.is_keras3 else OWN_WAY_KERAS2
    return [] if _has_any(own, (*own_way, *wanted)) else wanted[:1]


def keyword_refused(own: ClassFacts, kinds: Iterable[str]) -> str:
    """The keyword that the wrapper of this optimizer hands to `apply_gradients`, whichever of these wrappers it is, and
    that the class's own `apply_gradients` does not take; "" where it takes it, or has none of its own."""
    method = own.find_method("apply_gradients")
    if method is None or any(parameter.startswith("**") for parameter in method.parameters):
        return ""
    wanted = [
        next((argument for argument in HANDED_TO_APPLY[kind] if argument not in method.parameters), "")
        for kind in kinds
    ]
    return wanted[0] if wanted and all(wanted) else ""


def _passes_for_optimizer(own: ClassFacts, keras: Keras) -> bool:
    """Whether a class that derives from no optimizer has what the wrapper calls: Keras 3 does not ask for more."""
    is_duck = keras.is_keras3 and all(own.find_method(name) for name in DUCK_NEEDS)
    return is_duck or _has_any(own, ("__getattr__",))


def _has_any(own: ClassFacts, methods: Iterable[str]) -> bool:
    return any(own.find_method(name) for name in methods)


def package_of(api: Api, keras: Keras) -> str:
    """Which Keras a name belongs to: "Keras 3", "tf_keras" or "tf.keras"."""
    if api.root == "tf_keras":
        return "tf_keras"
    if api.root == "tensorflow":
        return {"keras": "Keras 3", "tf_keras": "tf_keras", "tf.keras": "tf.keras"}[keras.package]
    if api.root == "keras":
        return "Keras 3" if keras.package != "tf.keras" else ""
    return ""


def _wanted(library: list[Api], keras: Keras) -> list[str]:
    """The methods any one of which must be there, the usual one first."""
    if keras.is_keras3:
        return ["update_step"]
    if any(".legacy." in base.name for base in library):
        return ["_resource_apply_dense"]
    if keras.package == "tf.keras":
        release = keras.tensorflow_release
        if not release:
            return ["update_step", "_resource_apply_dense"]
        if release < (2, 11) and not any(".experimental." in base.name for base in library):
            return ["_resource_apply_dense"]
    return ["update_step"]
