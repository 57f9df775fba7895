"""The dtypes of what models, and layers of the user's own, return."""

from __future__ import annotations

from collections.abc import Callable

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.dtypes.layer_results import gives_what_its_base_gives, may_be_weight
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, Defined, FunctionFacts, Instance
from mpdoctor.program.values import Api, Collection, Item, Value, agreed, known, leaves, options
from mpdoctor.semantics.source.layers.networks import network_of_named_outputs, networks_behind
from mpdoctor.semantics.source.layers.output_dtypes import answers_in_compute_dtype
from mpdoctor.semantics.source.layers.output_layers import is_functional, layers_of_output, output_layers

MOST_NESTED = 8
LAMBDA = "keras.layers.Lambda"


class ModelDtypes:
    """The dtypes of the outputs of models and layers, of all or of one; None if not certain.

    nested
        How many models and functions are being looked into, one for the sake of another."""

    def __init__(
        self,
        facts: SourceFacts,
        of_layer: Callable[[Call], str | None],
        in_call: Callable[[Value | None], str | None],
    ) -> None:
        """`in_call`: the dtype of a value in the `call()` of a layer."""
        self.facts, self.of_layer, self._in_call = facts, of_layer, in_call
        self.nested = 0
        self._known: dict[int, str | None] = {}

    def of_model(self, model: Value | None) -> str | None:
        """The dtype of what a model (or a layer of the user's own) returns."""
        return agreed(self._of_one_model(option) for option in options(model))

    def of_class(self, own: ClassFacts) -> str | None:
        """The dtype of what the `call()` of a class of the user's own returns."""
        return self._remembered(own, lambda: self._of_own_class(own))

    def _of_one_model(self, model: Value) -> str | None:
        own = class_of(model)
        dtype = self.of_class(own) if own is not None else None
        if isinstance(model, Call) and is_call_of(model, "keras.layers.Lambda"):
            return self._remembered(model, lambda: self.of_lambda_layer(model)) if self.nested <= MOST_NESTED else None
        if dtype is None and isinstance(model, Call):
            dtype = self._remembered(model, lambda: self._of_last_layers(model) or self._of_features(model))
        return dtype

    def _of_features(self, model: Call) -> str | None:
        """The dtype of the outputs of a network of keras.applications, or of a model of its inner tensors."""
        return agreed(self.of_layer(network) for network in networks_behind(model))

    def _remembered(self, asked: ClassFacts | Call, answer: Callable[[], str | None]) -> str | None:
        """The cached dtype of a class or a model; None while it is being looked for."""
        if id(asked) not in self._known:
            self._known[id(asked)] = None
            self.nested += 1
            self._known[id(asked)] = answer()
            self.nested -= 1
        return self._known[id(asked)]

    def _of_last_layers(self, model: Call) -> str | None:
        if self.nested > MOST_NESTED:
            return None
        layers = output_layers(self.facts, model)
        if not layers and is_functional(model):
            return agreed(map(self._in_call, leaves(model.argument(1, "outputs"))))
        return agreed(self._of_output(layer) for layer in layers if layer is not model)

    def of_output(self, model: Value | None, name: object) -> str | None:
        """The dtype of one output of a model, by its number or its key, or in a functional model the name of the layer
        that makes it."""
        own = [class_of(option) for option in options(model)]
        if own and None not in own:
            return agreed(self._of_entry(each, name) for each in own if each is not None)
        made = [option for option in options(model) if isinstance(option, Call) and class_of(option) is None]
        placed = [layer for option in made for layer in layers_of_output(option, name)]
        layers = [layer for option in made for layer in output_layers(self.facts, option)]
        named = [layer for layer in layers if known(layer.keyword("name")) == name]
        return agreed(self._of_output(layer) for layer in placed or named)

    def _of_own_class(self, own: ClassFacts) -> str | None:
        call = own.find_method("call") if own.is_layer else None
        if self.nested > MOST_NESTED:
            return None
        if call is None:
            makings = self.facts.makings_of(own)
            if own.kind == "layer" and all(
                gives_what_its_base_gives(made, self.facts.values_returned) for made in makings
            ):
                return agreed(map(self.of_layer, makings))
            outputs = own.base_argument("outputs") if own.kind == "model" and not makings else None
            if outputs is not None:  # of a functional model that others make: `super().__init__(inputs=…, outputs=…)`
                return agreed(map(self._in_call, leaves(outputs)))
            return agreed(map(self._of_last_layers, makings))
        return agreed(self._in_call(event.value) for event in self.facts.returns_of(call))

    def of_one_output(self, item: Item, in_call: bool) -> str | None:
        """The dtype of one of several outputs, as in `boxes, logits = model(x)` or `model(x)["logits"]`: by what the
        model's class returns, or by the outputs of a functional model. None for a weight that is returned as it is,
        which is read in float32 outside of any `call()`."""
        whole = _outputs_gone_through(item)
        if whole is not None:
            return self.of_model(whole.callee)
        if isinstance(item.of, Item):
            return self._of_inner_output(item, in_call)
        place, made = known(item.index), item.of.callee if isinstance(item.of, Call) else None
        network = network_of_named_outputs(made) if made is not None else None
        if isinstance(network, Call):
            names = [known(option) for option in options(item.index)]
            is_inner = bool(names) and all(isinstance(name, str) and not name.startswith("input") for name in names)
            return self.of_layer(network) if is_inner else None
        if type(place) not in (int, str) or self.nested > MOST_NESTED:
            return None
        if isinstance(made, Call) and is_functional(made):
            layers = layers_of_output(made, place)
            return agreed(map(self._of_output, layers)) if layers else self._of_computed_output(made, place)
        if isinstance(made, Call) and is_call_of(made, LAMBDA):
            return self.of_lambda_layer(made, place)
        own = class_of(made) if isinstance(made, (Call, Instance)) else None
        return self._of_entry(own, place, in_call) if own is not None else None

    def _of_inner_output(self, item: Item, in_call: bool) -> str | None:
        """The dtype of an output inside a list or dict that is one of the outputs itself: `model(x)["aux"][0]["box"]`,
        `for level in model(x)[1]`."""
        from mpdoctor.semantics.source.layers.nested_outputs import inner_outputs, whole_and_places  # few have any

        call, places = whole_and_places(item)
        made = call.callee if isinstance(call, Call) else None
        own = class_of(made) if isinstance(made, (Call, Instance)) else None
        method = own.find_method("call") if own is not None and own.kind == "model" else None
        if self.nested > MOST_NESTED:
            return None
        whole: tuple[Value, ...] = ()
        if method is not None:
            whole = tuple(option for event in self.facts.returns_of(method) for option in options(event.value))
        elif isinstance(made, Call) and is_functional(made):
            whole = options(made.argument(1, "outputs"))
        outputs = inner_outputs(whole, places)
        if not outputs or (not in_call and any(map(may_be_weight, outputs))):
            return None
        self.nested += 1
        dtype = agreed(map(self._in_call, outputs))
        self.nested -= 1
        return dtype

    def _of_computed_output(self, model: Call, place: object) -> str | None:
        """The dtype of one output of a functional model that no layer is the last to make."""
        outputs = [_entry(option, place) for option in options(model.argument(1, "outputs"))]
        self.nested += 1
        dtype = None if None in outputs else agreed(map(self._in_call, outputs))
        self.nested -= 1
        return dtype

    def _of_entry(self, own: ClassFacts, place: object, in_call: bool = False) -> str | None:
        """The dtype of one of the outputs that the `call()` of a model's class returns, by its number or its key."""
        call = own.find_method("call") if own.kind == "model" else None
        if call is None or self.nested > MOST_NESTED:
            return None
        self.nested += 1
        returned = [option for event in self.facts.returns_of(call) for option in options(event.value)]
        outputs = [_entry(value, place) for value in returned if not _lacks_key(value, place)]
        unknown = [output is None or (not in_call and may_be_weight(output)) for output in outputs]
        dtype = None if any(unknown) else agreed(map(self._in_call, outputs))
        self.nested -= 1
        return dtype

    def _of_output(self, layer: Call) -> str | None:
        """The dtype of what the last layer of a model returns."""
        if class_of(layer) is not None:
            return self._of_one_model(layer)
        if is_call_of(layer, LAMBDA):
            return self.of_lambda_layer(layer)
        name = public_name(layer.callee.name).rpartition(".") if isinstance(layer.callee, Api) else ("", "", "")
        is_sure = answers_in_compute_dtype(layer, self.facts.keras) or name[2] in ("TimeDistributed", "Bidirectional")
        return self.of_layer(layer) if is_sure or name[0].startswith("keras.applications") else None

    def of_lambda_layer(self, layer: Call, place: object = None) -> str | None:
        """The dtype that the layer's function returns, where that is one of the user's own; with a `place` that of one
        of several outputs."""
        functions = [option.of if isinstance(option, Defined) else None for option in options(layer.argument(0))]
        events = [tuple(self.facts.returns_of(of)) if isinstance(of, FunctionFacts) else () for of in functions]
        if not all(events) or self.nested > MOST_NESTED:
            return None
        returned = [event.value for of_function in events for event in of_function]
        self.nested += 1
        dtype = agreed(self._in_call(value if place is None else _entry(value, place)) for value in returned)
        self.nested -= 1
        return dtype


def _entry(value: Value, place: object) -> Value | None:
    return value.entry(place) if isinstance(value, Collection) else None


def _lacks_key(value: Value, place: object) -> bool:
    """Whether it is a dict in which the key is not, as the loss where there are no labels: there nobody reads it."""
    is_whole_dict = isinstance(value, Collection) and value.kind == "dict" and not value.open
    return is_whole_dict and _entry(value, place) is None


def _outputs_gone_through(item: Item) -> Call | None:
    """The call of a model whose outputs a loop goes through: `for name, output in model(x).items():`, `.values()`."""
    pairs = item.of if isinstance(item.of, Item) and known(item.index) == 1 else None
    asked, method = (pairs.of, "items") if isinstance(pairs, Item) else (item.of, "values")
    is_asked = isinstance(asked, Call) and asked.method == method and not asked.args
    called = asked.receiver if is_asked and isinstance(asked, Call) else None
    return called if isinstance(called, Call) and isinstance(called.callee, (Call, Instance)) else None
