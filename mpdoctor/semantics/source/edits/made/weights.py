"""A raw variable of a layer made into a weight of Keras': `self.add_weight(…)` in the place of `tf.Variable(…)`."""

from __future__ import annotations

import ast

from mpdoctor.finding import Edit
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Value, known, options
from mpdoctor.semantics.source.edits.expressions import replaced
from mpdoctor.semantics.source.edits.names import keras_name
from mpdoctor.semantics.source.texts.written import text_of

_FILLED = ("ones", "zeros")
# Of `tf.random`: the initializer that makes the same numbers, the parameters behind the shape, and what they are by
# default in TensorFlow.
_RANDOM = {
    "normal": ("RandomNormal", ("mean", "stddev"), ("0.0", "1.0")),
    "truncated_normal": ("TruncatedNormal", ("mean", "stddev"), ("0.0", "1.0")),
    "uniform": ("RandomUniform", ("minval", "maxval"), ("0.0", "1.0")),
}
_KEPT = ("trainable",)
_LEFT_OUT = ("name", "initial_value", "dtype")
_FLOAT32 = ("float32", "tensorflow.float32", "numpy.float32")


def as_added_weight(facts: SourceFacts, variable: Call) -> Edit | None:
    """The edit that makes the raw variable a weight. None where the variable is not kept in an attribute of the layer,
    or its value is one that no initializer makes."""
    holder, name = _attribute(facts, variable)
    text = text_of(facts, variable.location)
    made = _WrittenCall.read(text) if text is not None and holder and not variable.open else None
    if made is None or len(made.call.args) > 1 or not made.keywords.keys() <= {*_KEPT, *_LEFT_OUT}:
        return None
    dtype = variable.keyword("dtype")
    shape, initializer = _shape_and_initializer(facts, variable.argument(0, "initial_value"), made)
    if not shape or not initializer or not (dtype is None or _is_float32(dtype)):
        return None
    called = made.keywords.get("name", f'"{name}"')
    kept = "".join(f", {word}={made.keywords[word]}" for word in _KEPT if word in made.keywords)
    weight = f"{holder}.add_weight(name={called}, shape={shape}, initializer={initializer}{kept})"
    return replaced(facts, variable.location, weight)


class _WrittenCall:
    """A call as it is written, with the texts of its parts."""

    def __init__(self, call: ast.Call, text: str) -> None:
        self.call, self._text = call, text
        self.keywords = {keyword.arg: self.text_of(keyword.value) for keyword in call.keywords if keyword.arg}

    @classmethod
    def read(cls, text: str) -> _WrittenCall | None:
        text = f"({text})"
        try:
            call = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError):
            return None
        return cls(call, text) if isinstance(call, ast.Call) else None

    def text_of(self, node: ast.expr) -> str:
        return ast.get_source_segment(self._text, node) or ""

    def argument(self, *names: str) -> ast.expr | None:
        """The first argument of the call, or the one that has one of these names."""
        named = (keyword.value for keyword in self.call.keywords if keyword.arg in names)
        return self.call.args[0] if self.call.args else next(named, None)

    @property
    def initial(self) -> _WrittenCall | None:
        """The call that makes the first value."""
        value = self.argument("initial_value")
        return _WrittenCall(value, self._text) if isinstance(value, ast.Call) else None

    @property
    def shape(self) -> str:
        """A tuple, a list or a slice of one; "" for anything else: `add_weight` takes no single number."""
        shape = self.argument("shape")
        is_slice = isinstance(shape, ast.Subscript) and isinstance(shape.slice, ast.Slice)
        return (
            self.text_of(shape) if shape is not None and (is_slice or isinstance(shape, (ast.Tuple, ast.List))) else ""
        )


def _attribute(facts: SourceFacts, variable: Call) -> tuple[str, str]:
    """How the method that makes it calls the layer, and the attribute that keeps it there; "" where none does."""
    function = variable.context.function
    if function is None or function.owner is None or not function.parameters:
        return "", ""
    kept = [
        write
        for write in facts.writes
        if write.context.function is function and any(option is variable for option in options(write.value))
    ]
    return (function.parameters[0], kept[0].name) if len(kept) == 1 and kept[0].name else ("", "")


def _is_float32(dtype: Value) -> bool:
    return known(dtype) in _FLOAT32 or (isinstance(dtype, Api) and dtype.name in _FLOAT32)


def _shape_and_initializer(facts: SourceFacts, value: Value | None, made: _WrittenCall) -> tuple[str, str]:
    """The shape and the initializer as source text for `add_weight`; "" for what cannot be written."""
    number, initial = known(value), made.initial
    if isinstance(number, (int, float)) and not isinstance(number, bool):
        return "()", _constant(facts, number)
    if not isinstance(value, Call) or initial is None:
        return "", ""
    if isinstance(value.callee, Call):  # `keras.initializers.HeNormal()(shape)`
        made_by = value.callee.callee
        is_initializer = isinstance(made_by, Api) and public_name(made_by.name).startswith("keras.initializers.")
        return initial.shape, initial.text_of(initial.call.func) if is_initializer else ""
    place, _, name = public_name(value.callee.name if isinstance(value.callee, Api) else "").rpartition(".")
    if place == "tensorflow.random" and name in _RANDOM:
        return initial.shape, _random(facts, name, initial)
    return initial.shape, f'"{name}"' if place in ("tensorflow", "keras.ops") and name in _FILLED else ""


def _constant(facts: SourceFacts, number: float) -> str:
    if number in (0, 1):
        return '"ones"' if number else '"zeros"'
    name = keras_name(facts, "initializers.Constant")
    return f"{name}({number!r})" if name is not None else ""


def _random(facts: SourceFacts, function: str, initial: _WrittenCall) -> str:
    class_name, parameters, defaults = _RANDOM[function]
    name = keras_name(facts, f"initializers.{class_name}")
    if name is None or not initial.keywords.keys() <= {"shape", "dtype", *parameters}:
        return ""
    given = dict(zip(parameters, defaults, strict=True))
    given |= dict(zip(parameters, map(initial.text_of, initial.call.args[1:3]), strict=False))
    given |= {parameter: initial.keywords[parameter] for parameter in parameters if parameter in initial.keywords}
    return f"{name}({', '.join(f'{parameter}={text}' for parameter, text in given.items())})"
