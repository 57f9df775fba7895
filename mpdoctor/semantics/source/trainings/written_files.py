"""The model files that a program writes, in the form in which the other programs of a project get them."""

from __future__ import annotations

import ast

from mpdoctor.knowledge.python_idioms import is_main_test
from mpdoctor.program.events import Call
from mpdoctor.program.saved_file import SavedFile
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value, options
from mpdoctor.semantics.source.layers.model_layers import policies_inside
from mpdoctor.semantics.source.optimizers.bare_optimizers import is_bare
from mpdoctor.semantics.source.optimizers.wrappers import compiles_of
from mpdoctor.semantics.source.trainings.saved_files import Save, is_doubtful, is_load_of, saves, text_of


def saved_files_from_events(facts: SourceFacts) -> tuple[SavedFile, ...]:
    """The value of `SourceFacts.files_saved`, from the events. A model that was loaded from the same file leaves it as
    it is."""
    files = {}
    for save in saves(facts):
        path = text_of(save.path)
        made = [option for option in options(save.model) if not is_load_of(option, save.path)]
        if path and (made or save.model is None):
            files[_saved_file(facts, path, made, save)] = True
    return tuple(files)


def _saved_file(facts: SourceFacts, path: str, made: list[Value], save: Save) -> SavedFile:
    models = [model for model in made if isinstance(model, Call)]
    seen = {policies_inside(facts, model) for model in models}
    is_clear = len(models) == len(made) and len(seen) == 1
    policies = seen.pop() if is_clear else frozenset()
    is_certain = not is_doubtful(policies)
    return SavedFile(
        path,
        save.path.location,
        save.call.location,
        tuple(sorted({str(name or "float32") for name in policies})) if is_certain else (),
        None in policies and not _is_run_by_itself(facts, save.call),
        bool(models) and all(_is_compiled_bare(facts, model) for model in models),
        save.call.context.reached,
    )


def _is_compiled_bare(facts: SourceFacts, model: Call) -> bool:
    compiles = compiles_of(facts, model)
    return bool(compiles) and all(is_bare(call.argument(0, "optimizer"), is_open=False) for call in compiles)


def _is_run_by_itself(facts: SourceFacts, save: Call) -> bool:
    """Whether it comes from what stands in `if __name__ == "__main__":`, which no importer runs."""
    start = (*save.context.callers, save.location)[0]
    return any(
        isinstance(node, ast.If) and is_main_test(node.test) and node.lineno <= start.line <= (node.end_lineno or 0)
        for node in (ast.parse(facts.text).body if start.path == facts.path and not facts.cells else ())
    )
