"""Execution of one program: a script with what it imports, then the functions that nobody called; each file's facts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from mpdoctor.program.breakdown import breakdown_from_error, room_for_frames
from mpdoctor.program.context import Context
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts
from mpdoctor.program.values import Known
from mpdoctor.source.interpreter.call_inlining import inline_uncalled
from mpdoctor.source.interpreter.dispatch import execute_block
from mpdoctor.source.interpreter.imports import execute_module, load_module, new_module
from mpdoctor.source.interpreter.node_handlers import EXPRESSIONS, STATEMENTS
from mpdoctor.source.interpreter.state.events import MOST_EVENTS, Enough, Events, joined_events
from mpdoctor.source.interpreter.state.interpreter_state import LoadModule, State
from mpdoctor.source.interpreter.state.scopes import Closure, Frame, Import, Module, imports_of
from mpdoctor.source.keras2_signs import sign_of_keras2
from mpdoctor.source.keras_of_source import declared_keras
from mpdoctor.source.modules import Files
from mpdoctor.source.reading import Source
from mpdoctor.source.syntax_nodes import SETTING_UP
from mpdoctor.source.template_methods import inherited_templates, steps_of_templates

# When a function is executed that nobody has called.
_COMPILES, _READS_ITS_OWN, _CALLED_BY_OTHERS, _READS_OF_OTHERS, _WRAPS = range(5)
_FRAMES = 6000  # Python frames of the deepest walk: DEEPEST levels in each of DEEPEST_CALL functions, some 3 each


def new_state(
    files: Files | None = None,
    root: Path | None = None,
    shown: Mapping[Path, str] = MappingProxyType({}),
    load: LoadModule = load_module,
) -> State:
    """A state of the interpreter before anything is executed. `shown`: how the files that were asked about are shown,
    by absolute path."""
    return State(EXPRESSIONS, STATEMENTS, load, files or Files(), root, shown)


def execute_script(state: State, source: Source, path: Path | None) -> Module:
    """Run a file as a script, unless another file imported it before. `path` is None for text that is no
    file."""
    module = None if path is None else state.modules.get(path)
    if module is None:
        module = new_module(state, source, path, "__main__", None)
        if path is not None:
            state.modules[path] = module
        state.walk.script = module
        within_bounds(state, module, execute_module)
    return module


def execute_the_rest(state: State, module: Module) -> None:
    """Execute the functions of this module that were not called, and its `if __name__ == "__main__"` if it was
    imported."""
    within_bounds(state, module, _execute_the_rest)


def within_bounds(state: State, module: Module, execute: Callable[[State, Module], None]) -> None:
    """Execute a module. A program that is too large or too deep, or that we break on, ends its own walk, and no other
    file's."""
    walk = state.walk
    walk.last_order, walk.inlined_statements, walk.modules_read = state.order + MOST_EVENTS, 0, 0
    walk.times_inlined.clear()
    walk.statements_in.clear()
    walk.changed.clear()
    try:
        with room_for_frames(_FRAMES):
            execute(state, module)
    except (Enough, RecursionError):
        module.incomplete.append(True)
    except Exception as error:
        module.breakdowns.append(breakdown_from_error(module.source.path, error))
    finally:
        walk.call_stack.clear()
        walk.entering.clear()
        walk.visiting = walk.unrolling = 0
        state.depth, state.frame, state.context = 0, Frame(), Context()


def _execute_the_rest(state: State, module: Module) -> None:
    state.module, state.scope, state.events = module, module.scope, module.later
    state.qualified, state.owner = [], None
    _execute_main_blocks(state, module)
    left_to_others = steps_of_templates(state, module)
    standing = _classes_standing_for_bases(state, module)
    state.walk.made_for = {id(base): own for base, own in standing.items()}
    for base, own in standing.items():
        _tell_base(state, base, own)
    for closure in _in_order(module.closures):
        if _is_to_be_executed(state, closure) and id(closure.facts) not in left_to_others:
            owner = closure.facts.owner
            is_made = id(owner) in state.walk.instantiated or owner in standing
            is_framework = owner is not None and owner.kind is not None and is_made
            _begin_run(state, reached=is_framework)
            for setting_up in _inherited_builds(state, closure):
                inline_uncalled(state, setting_up)
            inline_uncalled(state, closure)
    for own in module.classes:
        for closure in inherited_templates(state, own):
            inherited = dataclasses.replace(closure, facts=dataclasses.replace(closure.facts, owner=own))
            module.closures.append(inherited)  # it has been executed by its id, which nothing else may have
            own.as_inherited[closure.facts.name], state.closures[id(inherited.facts)] = inherited.facts, inherited
            _begin_run(state, reached=id(own) in state.walk.instantiated)
            for setting_up in _inherited_builds(state, inherited):
                inline_uncalled(state, setting_up)
            inline_uncalled(state, inherited)


def _classes_standing_for_bases(state: State, module: Module) -> dict[ClassFacts, ClassFacts]:
    """For each base class that the program does not instantiate itself, the class that stands for it: the one
    instantiated class, where all classes below the base are that class and its own bases."""
    below: dict[ClassFacts, list[ClassFacts]] = {}
    for own in module.classes:
        for base in own.lineage()[1:]:
            below.setdefault(base, []).append(own)
    standing_for: dict[ClassFacts, ClassFacts] = {}
    for base, classes in below.items():
        made = [own for own in (base, *classes) if id(own) in state.walk.instantiated]
        if len(made) == 1 and made[0] is not base and set(classes) <= set(made[0].lineage()):
            standing_for[base] = made[0]
    return standing_for


def _tell_base(state: State, base: ClassFacts, own: ClassFacts) -> None:
    """Give a base class the attributes that are known of the one class that stands for it."""
    for name, value in own.attributes.items():
        if name not in base.attributes:
            state.walk.side_effects.set(base.attributes, name, value)


def _in_order(closures: list[Closure]) -> Iterator[Closure]:
    """All functions in the order in which they are followed, with those that are defined meanwhile: `compile` methods
    of models, which set what the steps read; functions that no function calls, so that helpers are followed with real
    arguments; then these helpers; functions that read attributes which others set; methods of mixins; and last the
    wrappers that decorators return, whose arguments are unknown."""
    seen = set()
    for last in range(_WRAPS + 1):
        for closure in closures:  # which grows
            if id(closure) not in seen and _stage(closure) <= last:
                seen.add(id(closure))
                yield closure


def _stage(closure: Closure) -> int:
    if closure.is_wrapper:
        return _WRAPS
    owner, name = closure.facts.owner, closure.facts.name
    if _is_compile(closure):
        return _COMPILES
    if owner is not None:  # a method may set what others read, whoever calls it
        return _READS_OF_OTHERS if owner.whole is not owner and name not in SETTING_UP else _READS_ITS_OWN
    return _CALLED_BY_OTHERS if name in closure.module.source.names_called else _READS_ITS_OWN


def _is_compile(closure: Closure) -> bool:
    """Whether it is the `compile` of a model."""
    owner = closure.facts.owner
    return closure.facts.name == "compile" and owner is not None and owner.kind == "model"


def _is_to_be_executed(state: State, closure: Closure) -> bool:
    """Whether a function was not executed yet, or sets up objects and was executed only for objects of several derived
    classes: the methods of its own class read what it sets."""
    if id(closure.facts) not in state.walk.executed:
        return True
    owner = closure.facts.owner
    if owner is None or not (closure.facts.name in SETTING_UP or _is_compile(closure)):
        return False
    return id(owner) not in state.walk.set_up and id(owner) not in state.walk.made_for


def _execute_main_blocks(state: State, module: Module) -> None:
    """Execute what an imported module does when it is run by itself. The importing program does not do that: functions
    of other modules that only this run has executed are still to be executed for it."""
    if not module.main_blocks:
        return
    before = set(state.walk.executed)
    for body in module.main_blocks:
        _begin_run(state, reached=True)
        module.main_runs.add(state.runs)
        module.scope.names["__name__"] = Known(module.location, "__main__")
        execute_block(state, body)
    state.walk.executed &= before | {id(closure.facts) for closure in module.closures}


def _inherited_builds(state: State, closure: Closure) -> Iterator[Closure]:
    """What sets up the attributes that a method reads, and is inherited from a class of another file, whose own
    functions may come later."""
    owner = closure.facts.owner
    methods = [owner.find_method(name) for name in ("build", "compile")] if owner is not None else []
    for method in methods:
        inherited = state.closures.get(id(method)) if method is not None and method.owner is not owner else None
        if inherited is None or inherited.module is closure.module:
            continue
        if _is_to_be_executed(state, inherited):
            yield inherited


def _begin_run(state: State, reached: bool) -> None:
    state.runs += 1
    state.context = Context(reached=reached, run=state.runs, guarded=state.walk.guarded)


def policies_where_set(imported: Module, by: Import) -> list[Call]:
    """The calls by which an imported module sets the global policy, at their own places."""
    return imported.policy_calls


def facts_from_module(
    module: Module, policies: Callable[[Module, Import], Iterable[Call]] = policies_where_set
) -> SourceFacts:
    """The facts of a module: its own events, and the calls that set a policy in modules that it imports."""
    imported = imports_of(module)
    breakdowns = (*module.breakdowns, *(breakdown for other, _ in imported for breakdown in other.breakdowns))
    if module.breakdowns:
        return SourceFacts(module.source.path, breakdowns=breakdowns)
    of_imported = Events(calls=[call for other, by in imported for call in policies(other, by)])
    events = joined_events((module.events, module.later, of_imported))
    return SourceFacts(
        module.source.path,
        module.source.text,
        tuple(events.uses),
        tuple(events.calls),
        tuple(events.reads),
        tuple(events.writes),
        tuple(events.operations),
        tuple(events.withs),
        tuple(events.returns),
        tuple(module.classes),
        tuple(module.functions),
        tuple(other.source.path for other, _ in imported),
        *_imports_by_guard(module),
        declared_keras=declared_keras(module.source.path, events.uses, events.calls, events.writes),
        sign_of_keras2=sign_of_keras2(module.source.path, module.source.tree, events.calls),
        package=module.package,
        libraries_held=tuple(sorted(module.libraries_held)),
        incomplete=bool(module.incomplete),
        breakdowns=breakdowns,
    )


def facts_of_program(modules: Iterable[Module]) -> SourceFacts:
    """The facts of a script and all that it imports, as if they stood in the script's file. What an imported module
    does under `if __name__ == "__main__"` is left out."""
    script, *imported = [module for module in modules if not module.breakdowns]
    later = (_without_runs(module.later, module.main_runs) for module in imported)
    events = joined_events((script.events, script.later, *(module.events for module in imported), *later))
    return dataclasses.replace(
        facts_from_module(script),
        uses=tuple(events.uses),
        calls=tuple(events.calls),
        reads=tuple(events.reads),
        writes=tuple(events.writes),
        operations=tuple(events.operations),
        withs=tuple(events.withs),
        returns=tuple(events.returns),
        classes=tuple(own for module in (script, *imported) for own in module.classes),
        functions=tuple(own for module in (script, *imported) for own in module.functions),
    )


def _without_runs(events: Events, runs: Container[int]) -> Events:
    """The events that no run with one of these numbers (`Context.run`) recorded."""
    return Events(*([event for event in stretch if event.context.run not in runs] for stretch in events.stretches))


def _imports_by_guard(module: Module) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Paths of what it imports itself: for certain, and where it asks first whether that works."""
    others = [imported for imported in module.imports.values() if imported.module.source.path != module.source.path]
    certain = (imported.module.source.path for imported in others if not imported.context.guarded)
    return tuple(certain), tuple(imported.module.source.path for imported in others if imported.context.guarded)
