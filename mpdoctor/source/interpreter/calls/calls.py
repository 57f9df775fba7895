"""Values of calls; the user's own functions are inlined with the arguments that they are given."""

from __future__ import annotations

import ast
from functools import cache, partial

from mpdoctor.facts.location import Location
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.command_line import RUNNING_COMMANDS
from mpdoctor.program.events import Call
from mpdoctor.program.instances import method_called
from mpdoctor.program.user_definitions import ClassFacts, Defined, FunctionFacts
from mpdoctor.program.values import Api, Attribute, Collection, Either, Value, is_api, options
from mpdoctor.source.interpreter.attributes import evaluate_attribute
from mpdoctor.source.interpreter.call_inlining import DEEPEST_CALL, inline_call, inline_uncalled
from mpdoctor.source.interpreter.calls.base_arguments import remember_base_arguments
from mpdoctor.source.interpreter.calls.builtin_calls import call_builtin, call_known_method, call_library
from mpdoctor.source.interpreter.calls.callees import (
    TRANSPARENT,
    CallSite,
    Inlinable,
    closure_of,
    executed_function,
    inlinable_function,
    is_given_one_of_several,
    really_called,
)
from mpdoctor.source.interpreter.calls.chosen_functions import where_chosen
from mpdoctor.source.interpreter.calls.higher_order_calls import result_of_higher_order, run_command
from mpdoctor.source.interpreter.containers.calls import columns_of
from mpdoctor.source.interpreter.containers.changes import put_back_arguments
from mpdoctor.source.interpreter.containers.elements import ITERATING, contents_of, element_of, iterated
from mpdoctor.source.interpreter.dispatch import evaluate
from mpdoctor.source.interpreter.expressions import evaluate_keywords, evaluate_positional
from mpdoctor.source.interpreter.settings.command_line import default_of_variable, keeps_functions, remember_flag
from mpdoctor.source.interpreter.settings.data_classes import (
    factory_of_field,
    fields_of,
    is_plain_named_tuple,
    member_by_value,
    named_tuple,
    tuple_with_names,
)
from mpdoctor.source.interpreter.settings.own_dicts import keep_items
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.recording import record_use
from mpdoctor.source.interpreter.state.scopes import Closure, Keywords
from mpdoctor.source.joining import callables_of, joined, with_default

_TRANSPARENT = frozenset(map(public_name, TRANSPARENT))
_MAY_HOLD_FUNCTIONS = (Defined, Call, Collection, Either)


def evaluate_call(state: State, node: ast.Call, dropped: bool = False) -> Value:
    """The value of a call; records it, and inlines the user's own function. `dropped`: nothing uses the value."""
    function = node.func
    if isinstance(function, ast.Attribute):
        callee = evaluate_attribute(state, function, is_called=True)
    else:
        callee = evaluate(state, function)
    if isinstance(callee, Either):
        callee = callables_of(callee)
    is_spread = ast.Starred in map(type, node.args)
    if is_spread and is_api(callee, "builtins.zip") and len(node.args) == 1:
        return _unzipped(state, node, callee)
    if is_spread:
        args, is_open = evaluate_positional(state, node, *executed_function(state, callee))
    else:
        args, is_open = tuple([evaluate(state, argument) for argument in node.args]), False
    keywords, more = evaluate_keywords(state, node.keywords) if node.keywords else ((), False)
    site = CallSite(state.place(node), args, keywords, is_open or more, dropped, node)
    return _call_each(state, callee, site, node) if isinstance(callee, Either) else _call(state, callee, site)


def _call_each(state: State, callee: Either, site: CallSite, node: ast.Call) -> Value:
    """The joined results of any of several functions."""
    results, outer = [], state.context
    for number, choice in enumerate(callee.options):
        state.context = where_chosen(state, outer, node, callee, number)
        results.append(_call(state, choice, site))
    state.context, state.frame.left_at = outer, None
    return joined(results)


def _unzipped(state: State, node: ast.Call, callee: Value) -> Value:
    """`grads, variables = zip(*pairs)`, of pairs whatever their number."""
    (spread,), location = node.args, state.place(node)
    rows = evaluate(state, spread.value if isinstance(spread, ast.Starred) else spread)
    columns = columns_of(element_of(rows, location), location)
    held = contents_of(rows)
    is_whole = isinstance(held, Collection) and held.kind in ("list", "tuple") and not held.open
    if columns is not None and not is_whole:
        return columns
    args = held.items if is_whole and isinstance(held, Collection) else ()
    return _call(state, callee, CallSite(location, args, is_open=not is_whole, node=node))


def _call(state: State, callee: Value, site: CallSite) -> Value:
    """What a call of this one function gives; records it, and inlines the user's own function."""
    if not isinstance(callee, Api):
        callee, site = really_called(callee, site)
    if site.args and isinstance(site.args[0], Either) and is_given_one_of_several(callee, site.args[0]):
        given = [(choice, *site.args[1:]) for choice in options(site.args[0])]
        return joined(_call(state, callee, site._replace(args=args)) for args in given)
    if isinstance(callee, Defined) and isinstance(callee.of, ClassFacts):
        return _instantiate(state, callee, callee.of, site)
    if isinstance(callee, Api):
        return _call_library(state, callee, site)
    inlinable = inlinable_function(state, callee, site.args, site.keywords)
    if inlinable is not None and inlinable[0].facts.name == "call":
        _build_first(state, inlinable[0].facts)
    result = None if inlinable is None else _inline(state, callee, inlinable, site)
    gives, yields = (None, result) if inlinable is not None and inlinable[0].is_generator else (result, None)
    call = site.call_of(callee, state, gives, yields)
    state.events.calls.append(call)
    if inlinable is None:
        special = _special_result(state, callee, call, site.node)
        if special is not None:
            return special
        run_command(state, callee)
        _inline_handed_over(state, callee, call)
    return call if gives is None else gives


def _special_result(state: State, callee: Value, call: Call, node: ast.Call | None) -> Value | None:
    """The result of a method that the interpreter knows, and of a class of named tuples."""
    if isinstance(callee, Attribute) and node is not None:
        if callee.name == "store":
            from mpdoctor.source.interpreter.calls.structured_settings import remember_stored  # few programs use it

            remember_stored(state, call, lambda settings: call_value(state, settings, (), call.location))
        return call_known_method(state, callee, call, node)
    return None if call.open else named_tuple(callee, call.args, call.keywords, call.location)


def _call_library(state: State, callee: Api, site: CallSite) -> Value:
    """What a function or a class of Python or of a library gives: the default of a setting that is read, the results of
    `map` and the like; of others the call itself."""
    if callee.name in ITERATING:
        site = site._replace(args=tuple(iterated(state, given) for given in site.args))
    followed = _followed(state, callee, site)
    if followed is not None:
        return followed
    call = site.call_of(callee, state)
    state.events.calls.append(call)
    remember_flag(state, call)
    default = default_of_variable(call)
    if default is not None:
        return with_default(default, call)
    special = result_of_higher_order(state, call, lambda of, given: call_value(state, of, given, call.location))
    if special is not None:
        return special
    _inline_handed_over(state, callee, call)
    return call


def _inline(state: State, callee: Value, inlinable: Inlinable, site: CallSite) -> Value | None:
    """What the user's own function returns, or yields where it is a generator."""
    if site.node is None:
        return inline_call(state, *inlinable, site.is_open, site.location)
    remember_base_arguments(state, callee, site.keywords, site.node)
    at_yield = state.walk.entering.pop(id(site.node), None)
    at_end = partial(put_back_arguments, state, site.node, *inlinable)
    return inline_call(state, *inlinable, site.is_open, site.location, at_yield, at_end)


def _build_first(state: State, method: FunctionFacts) -> None:
    """Execute the `build` of a layer whose `call` the program calls by its name, which reads what that sets."""
    owner = method.owner
    building = None if owner is None or owner.kind is None else owner.find_method("build")
    closure = None if building is None else state.closures.get(id(building))
    if closure is not None and id(closure.facts) not in state.walk.executed:
        inline_uncalled(state, closure)


def _followed(state: State, callee: Api, site: CallSite) -> Value | None:
    """The result of a function of Python or of a library, if it is known."""
    given = (callee.name, site.args, site.keywords, site.is_open, site.location)
    if callee.root == "builtins":
        return call_builtin(state, *given)
    followed = call_library(state, *given)
    if isinstance(followed, Api):
        record_use(state, followed, site.location, is_import=True)
    return followed


def call_value(state: State, callee: Value, args: tuple[Value, ...], location: Location) -> Value:
    """What a value gives that is called with these arguments by something else than a call of the program's own: by a
    decorator's `@`, or by a function that it was given to."""
    site = CallSite(location, args)
    return joined(_call(state, choice, site) for choice in options(callee))


def _instantiate(state: State, callee: Defined, own: ClassFacts, site: CallSite) -> Value:
    """What calling a class of the user's own gives: the call, an enum's member, or a tuple whose items have names."""
    member = member_by_value(own, site.args)
    if member is not None:
        return member
    call = site.call_of(callee, state)
    state.events.calls.append(call)
    if state.context.reached:
        state.walk.instantiated.add(id(own))
    initializer = own.find_method("__init__")
    closure = state.closures.get(id(initializer)) if initializer else None
    if closure is not None:
        inline_call(state, closure, (call, *site.args), site.keywords, site.is_open, site.location)
    else:
        _make_dataclass(state, own, call)
        keep_items(state, call, site.args, site.keywords)
    _inline_handed_over(state, callee, call)
    if is_plain_named_tuple(own) and not site.is_open:
        return tuple_with_names({**fields_of(own), **state.attributes[id(call)]}, site.location)
    return call


def _make_dataclass(state: State, own: ClassFacts, call: Call) -> None:
    """Set the attributes of a dataclass or a named tuple: fields in the order of the class body, then what
    `__post_init__` does."""
    if not call.open and own.kind is None:
        fields = fields_of(own)
        given = dict(zip(fields, call.args, strict=False)) | {name: v for name, v in call.keywords if name in fields}
        for name, default in fields.items():
            factory = None if name in given else factory_of_field(default)
            if factory is not None:
                given[name] = call_value(state, factory, (), default.location)
        state.attributes[id(call)] = state.walk.side_effects.created(given)
    finishing = own.find_method("__post_init__")
    closure = state.closures.get(id(finishing)) if finishing else None
    if closure is not None:
        inline_call(state, closure, (call,), (), is_open=False, location=call.location)


def _inline_handed_over(state: State, callee: Value, call: Call) -> None:
    """Inline the functions that a library is handed (`compile(loss=f)`, `dataset.map(f)`): it calls them some time."""
    if not (call.args or call.keywords) or len(state.walk.call_stack) >= DEEPEST_CALL:
        return
    may_hold_functions = [argument for argument in call.given if isinstance(argument, _MAY_HOLD_FUNCTIONS)]
    if not may_hold_functions or (isinstance(callee, Api) and _hands_on(callee.name)) or keeps_functions(call):
        return
    for argument in may_hold_functions:
        for choice in options(argument):
            for value in choice.items if isinstance(choice, Collection) else (choice,):
                if isinstance(value, Defined):
                    if isinstance(value.of, FunctionFacts) and is_api(callee, *RUNNING_COMMANDS):
                        value.of.run_by.append(call)
                    _inline_one_handed_over(state, callee, value)
                elif isinstance(value, Call):
                    _inline_one_handed_over(state, callee, value)


@cache
def _hands_on(name: str) -> bool:
    """Whether a library's function gives back what it is given, or something that calls it when it is called."""
    return public_name(name) in _TRANSPARENT or name == "functools.partial"


def _inline_one_handed_over(state: State, callee: Value, value: Value) -> None:
    """Inline a function, one that functools.partial has given some keywords, or the `__call__` of an object, that is
    handed to a callee."""
    keywords: Keywords = ()
    if isinstance(value, Call) and len(value.args) == 1 and is_api(value.callee, "functools.partial"):
        keywords = value.keywords
        value = value.args[0]
    closure = closure_of(state, value) if isinstance(value, Defined) else _closure_of_object(state, value)
    if closure is None:
        return
    walk = state.walk
    if id(closure.facts) not in (walk.executed_alone if _gives_half(callee) else walk.executed):
        inline_uncalled(state, closure, keywords)


def _gives_half(callee: Value) -> bool:
    """Whether Keras will give a function handed to this callee tensors of another dtype than the program may have given
    it itself."""
    return is_api(callee, "keras.layers.Lambda") or (isinstance(callee, Attribute) and callee.name == "compile")


def _closure_of_object(state: State, value: Value) -> Closure | None:
    """The `__call__` of an object of the user's own class that is no class of Keras'."""
    method = method_called(value)
    return None if method is None else state.closures.get(id(method))
