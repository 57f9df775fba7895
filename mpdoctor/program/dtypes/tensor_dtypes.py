"""Which dtype a tensor has, and what a value names as a dtype or policy."""

from __future__ import annotations

from typing import Callable, Iterable, Mapping, Optional

from mpdoctor.facts.versions import Keras
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.dtypes.result_dtypes import COMPARISONS, TOP_K
from mpdoctor.program.dtypes.array_dtypes import is_array
from mpdoctor.program.dtypes.dtype_names import AUTOCAST, DEEPEST, Returned, dtype_named_by, policies_by_name
from mpdoctor.program.dtypes.library_results import dtype_of_library_call
from mpdoctor.program.dtypes.object_results import dtype_of_called_object, dtype_of_method_call
from mpdoctor.program.dtypes.own_layers import (
    dtype_of_output_part,
    dtype_of_own_layer_output,
    dtype_of_parameter,
    is_weight,
)
from mpdoctor.program.dtypes.promotion import may_be_autocast, promoted
from mpdoctor.program.dtypes.python_numbers import is_number, without_start
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.user_definitions import FunctionFacts, Parameter
from mpdoctor.program.values import (
    Api,
    Attribute,
    Collection,
    Earlier,
    Either,
    Item,
    Others,
    Value,
    agreed,
    by_default,
    known,
    options,
)

_ARITHMETIC = ("+", "-", "*", "/", "**", "@")
_NESTED = 3  # questions that a caller asks while it is asked: the stack has room for a thousand frames
_MOST_CARRIED = 3  # names that a loop carries on, each depending on the next

Told = Callable[[Value, Optional[str]], Optional[str]]


def dtype_named(value: Value | None, keras: Keras | None = None) -> str | None:
    """The dtype that a value denotes: "float16" for "float16", tf.float16, tf.half, np.float16,
    np.dtype("float16"), tf.as_dtype(…), `x.dtype` of a tensor whose dtype is certain; "float32" for
    K.floatx(). AUTOCAST for `self.compute_dtype` or `x.dtype` of a layer's input, VARIABLE for `self.dtype`
    and `self.variable_dtype` in a layer. None if not certain."""
    return _Dtypes(keras).named(value, 0)


def dtype_of(
    value: Value | None,
    keras: Keras | None = None,
    remembered: Mapping[Value, str | None] | None = None,
    first_round: bool = False,
    returned: Returned | None = None,
    hands_on_dtypes: bool = True,
) -> str | None:
    """The dtype of a tensor (or array, see `is_array`): a name such as "float32", or AUTOCAST, or None if not
    certain.

    `keras` decides which parameters of a layer's `call()` are autocast: in Keras 2 the first only, in Keras 3 every
    tensor. Without it only the first is. `remembered`: answers given before. `first_round`: whether a name in a loop
    holds what it held before the loop. `returned`: what a function of the user's returns, for the layers that call one.
    `hands_on_dtypes`: whether the `**options` that a layer is made with may hold a `dtype`."""
    return _Dtypes(keras, None, remembered, first_round, returned, hands_on_dtypes).of(value, 0)


def dtypes_with(keras: Keras | None, told: Told) -> Callable[[Value | None], str | None]:
    """`dtype_of`, for a caller who knows more: `told(value, dtype)` is asked about each value on the way, the innermost
    first, and gives its dtype, or the one that a dtype names (`self.compute_dtype`). It remembers its answers."""
    dtypes, asking = _Dtypes(keras, told), 0

    def dtype(value: Value | None) -> str | None:
        nonlocal asking
        if asking >= _NESTED:
            return None
        asking += 1
        try:
            return dtypes.of(value, 0)
        finally:
            asking -= 1

    return dtype


def policies_named(value: Value | None) -> tuple[str, ...]:
    """Every policy or dtype that a value may denote as the `dtype` of a layer or as a global policy:
    ("mixed_float16",) for "mixed_float16", Policy("mixed_float16"), keras.DTypePolicy(…); ("float16",) for
    tf.float16; two names for `"mixed_float16" if amp else "float32"`. Names that no Keras knows are returned
    as written ("mixed_fp16"). () if any of it is not known."""
    return policies_by_name(value, dtype_named)


def _is_made_alike(option: Value) -> bool:
    return isinstance(option.callee if isinstance(option, Call) else option, Others)


def _carried_in(dtype: Value | None) -> Earlier | None:
    """The x of `x.dtype` where a loop carries it on."""
    of = dtype.of if isinstance(dtype, Attribute) and dtype.name == "dtype" else None
    return of if isinstance(of, Earlier) else None


def _is_unseen_element(option: Value) -> bool:
    held = option.of if isinstance(option, Item) and option.index is None else None
    return isinstance(held, Collection) and held.open and not held.uniform


class _Dtypes:
    """One question: remembers what it was asked on the way, because values are shared."""

    def __init__(
        self,
        keras: Keras | None,
        told: Told | None = None,
        remembered: Mapping[Value, str | None] | None = None,
        first_round: bool = False,
        returned: Returned | None = None,
        hands_on_dtypes: bool = True,
    ) -> None:
        self.first_round = first_round
        self.returned = returned
        self.hands_on_dtypes = hands_on_dtypes
        self.carried: dict[int, str] = {}
        self.keras = keras
        self.remembered = remembered if remembered is not None else {}
        self.told = told if told is not None else lambda value, dtype: dtype
        self.answers: dict[Value, str | None] = {}

    def named(self, value: Value | None, depth: int) -> str | None:
        choices = options(by_default(value))
        carried = {choice: of for choice in choices if (of := _carried_in(choice)) is not None}
        named = (choice for choice in choices if choice not in carried)
        dtype = agreed(self.told(choice, dtype_named_by(self, choice, depth + 1)) for choice in named)
        return dtype if self._stay_each_round(carried.values(), dtype, depth) else None

    def of(self, value: Value | None, depth: int) -> str | None:
        value = by_default(value)
        if value is None or depth > DEEPEST:
            return None
        if value in self.remembered:
            return self.remembered[value]
        if value not in self.answers:
            self.answers[value] = None
            several = value.options if isinstance(value, Either) else ()
            self.answers[value] = self._agreed_options(several, depth) if several else self._of_one(value, depth)
        return self.answers[value]

    def _of_one(self, value: Value, depth: int) -> str | None:
        return None if isinstance(value, Earlier) else self.told(value, self._of_uncached(value, depth + 1))

    def _agreed_options(self, several: tuple[Value, ...], depth: int) -> str | None:
        """The dtype on which several values agree. What a loop carries on agrees where the loop keeps that dtype;
        values that are made alike (`Others`) have the same one. Of the elements that a loop goes through those count
        that are seen: it comes to each of them."""
        several = tuple(option for option in several if not _is_made_alike(option)) or several
        several = tuple(option for option in several if not _is_unseen_element(option)) or several
        earlier = [option for option in several if isinstance(option, Earlier)]
        others = [option for option in several if not isinstance(option, Earlier)]
        dtype = agreed(self._of_one(option, depth) for option in without_start(others))
        return dtype if self._stay_each_round(earlier, dtype, depth) else None

    def _stay_each_round(self, carried: Iterable[Earlier], dtype: str | None, depth: int) -> bool:
        return dtype is not None and all(self._stays_each_round(each, dtype, depth) for each in carried)

    def _stays_each_round(self, carried: Earlier, dtype: str, depth: int) -> bool:
        """Whether what a loop carries on has this dtype each time round, if it has it the first time."""
        if self.first_round or id(carried) in self.carried:
            return self.carried.get(id(carried), dtype) == dtype
        if not carried.ends or len(self.carried) >= _MOST_CARRIED:
            return False
        then = self._like_this(self.told, self.remembered)
        then.carried = {**self.carried, id(carried): dtype}
        return all(then.of(end, depth + 1) == dtype for end in carried.ends)

    def agreed(self, values: Iterable[Value | None], depth: int) -> str | None:
        """The dtype of values that meet; Python numbers take the dtype of the others."""
        return agreed(self.of(value, depth) for value in values if not is_number(value) and not is_array(value))

    def _of_uncached(self, value: Value, depth: int) -> str | None:
        if isinstance(value, Call):
            return self._of_call(value, depth)
        if isinstance(value, Parameter):
            return dtype_of_parameter(value, self.keras)
        if isinstance(value, Item) and isinstance(value.of, Collection):
            is_any = value.index is None or isinstance(value.index, Item)  # by a counter
            return self._of_any_element(value.of, depth) if is_any else None
        if isinstance(value, Item):
            return self._of_part(value, depth)
        if isinstance(value, Operation):
            if value.operator in COMPARISONS:
                return "bool"
            return self._of_operation(value, depth)
        if isinstance(value, Attribute) and value.name in ("T", "mT", "real"):
            return self.of(value.of, depth)
        if isinstance(value, Attribute) and value.name == "values" and is_call_of(value.of, *TOP_K):
            return self.of(value.of, depth)
        return None

    def _of_part(self, part: Item, depth: int) -> str | None:
        # of several inputs by name, `features["length"]`, some are integers, which nothing casts
        is_certain = not isinstance(known(part.index), str)
        is_place = known(part.index) != 0 and is_call_of(part.of, *TOP_K)
        dtype = self.of(part.of, depth) if is_certain and not is_place else None
        return dtype_of_output_part(self, part, depth) if dtype is None else dtype

    def _of_any_element(self, held: Collection, depth: int) -> str | None:
        """The dtype of whichever element of a list a loop has come to, where all have the same one; of a list of
        weights that a loop fills those count that are seen."""
        is_seen = not held.open or held.uniform or all(map(is_weight, held.items))
        return agreed(self.of(item, depth) for item in held.items) if is_seen else None

    def _of_operation(self, value: Operation, depth: int) -> str | None:
        """The dtype of an operation's result: the one on which its operands agree, or what a weight promotes them to.
        Beside a tensor of which nothing is known the other one decides, see `_beside_unknown`."""
        met = [operand for operand in value.operands if not is_number(operand) and not is_array(operand)]
        dtypes = {self.of(operand, depth) for operand in met}
        are_alike = len(dtypes) == 1 and len(met) == len(value.operands)
        if AUTOCAST in dtypes and not are_alike and self._is_done_by_weight(value, depth):
            return promoted(self, value.operator, value.operands, depth)
        if None in dtypes and len(dtypes) == 2 and value.operator in _ARITHMETIC:
            return self._beside_unknown(met, dtypes, depth)
        dtype = agreed(dtypes)
        return None if value.operator == "/" and dtype is not None and "int" in dtype else dtype

    def _beside_unknown(self, met: list[Value], dtypes: set[str | None], depth: int) -> str | None:
        """The dtype of arithmetic with tensors of one dtype and others of which nothing is known. float32, unless one
        of those may be made from what is autocast: TensorFlow refuses there whatever is not float32. Keras 2's weights
        are read in 16 bits, and no tensor of another dtype meets them; Keras 3's promote."""
        if dtypes == {"float32", None}:
            unknown = (operand for operand in met if self.of(operand, depth) is None)
            return None if any(may_be_autocast(self, operand, depth) for operand in unknown) else "float32"
        is_keras2 = self.keras is not None and not self.keras.is_keras3
        return AUTOCAST if dtypes == {AUTOCAST, None} and is_keras2 else None

    def _is_done_by_weight(self, value: Operation, depth: int) -> bool:
        """Whether a variable of Keras 3 does the operation, which promotes dtypes: `self.w * x`, and `x * self.w` for a
        float32 tensor x, which TensorFlow leaves to the variable in a graph (eagerly that raises; Keras 3.15)."""
        if self.keras is None or not self.keras.is_keras3 or value.operator not in _ARITHMETIC:
            return False
        first, *others = value.operands
        return is_weight(first) or (any(map(is_weight, others)) and self.of(first, depth) == "float32")

    def _of_call(self, call: Call, depth: int) -> str | None:
        callee = call.callee
        if isinstance(callee, Api):
            if callee.root == "tensorflow_probability":
                from mpdoctor.program.dtypes.distributions import dtype_of_distribution  # few programs have any

                return dtype_of_distribution(self, public_name(callee.name), call, depth)
            return dtype_of_library_call(self, public_name(callee.name), call, depth)
        if isinstance(callee, Attribute):
            return dtype_of_method_call(self, call, callee, depth)
        if not isinstance(callee, Call):
            return None
        if isinstance(callee.callee, Api):
            return dtype_of_called_object(self, call, callee, callee.callee, depth)
        own = class_of(callee)
        return None if own is None else dtype_of_own_layer_output(self, call, own, depth)

    def of_result(self, function: FunctionFacts, depth: int) -> str | None:
        """The dtype of all that a function of the user's returns, where that is known and the same."""
        returned = () if self.returned is None else self.returned(function)
        return agreed(self.of(value, depth + 1) for value in returned)

    def of_result_for_autocast(self, function: FunctionFacts, depth: int) -> str | None:
        """The same for a tensor that a layer has cast as the function's first argument."""
        return self.with_autocast(function).of_result(function, depth)

    def with_autocast(self, function: FunctionFacts) -> _Dtypes:
        """Another question, in which the function's first parameter is autocast."""

        def told(value: Value, dtype: str | None) -> str | None:
            if isinstance(value, Parameter) and value.function is function and value.index == function.first_given:
                return AUTOCAST
            return self.told(value, dtype)

        return self._like_this(told)

    def _like_this(self, told: Told, remembered: Mapping[Value, str | None] | None = None) -> _Dtypes:
        """Another question about the same program."""
        returned, hands_on_dtypes = self.returned, self.hands_on_dtypes
        return _Dtypes(self.keras, told, remembered, returned=returned, hands_on_dtypes=hands_on_dtypes)
