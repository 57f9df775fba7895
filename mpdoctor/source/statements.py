"""Statements: names bound along every path that the program may take, and joined where the paths meet."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable

from mpdoctor.program.values import (
    MISSING,
    Api,
    Attribute,
    Branch,
    Call,
    Known,
    Unknown,
    Value,
    is_api,
    known,
    options,
)
from mpdoctor.source.arithmetic import OPERATORS, Earlier, joined, without_earlier
from mpdoctor.source.assignments import Assignments
from mpdoctor.source.expressions import DEEPEST
from mpdoctor.source.guards import (
    arm_of_wrapper,
    asks_whether_it_works,
    is_guarding_context,
    is_guarding_handler,
    is_main_test,
    may_prune,
    swallowing_handler,
)
from mpdoctor.source.scopes import Closure, merged_names

_SKIPS = ("skipTest",)  # methods of a test case that end it
_ENDS = ("sys.exit", "os._exit", "builtins.exit", "builtins.quit")


class Statements(Assignments):
    """A block tells whether the program goes on behind it: False after return, raise, break and continue."""

    def __init__(self) -> None:
        super().__init__()
        self._statements: dict[type[ast.AST], Callable[..., bool]] = {
            ast.Expr: self._expression,
            ast.Assign: self._assign,
            ast.AnnAssign: self._annotated,
            ast.AugAssign: self._augmented,
            ast.If: self._if,
            ast.For: self._for,
            ast.AsyncFor: self._for,
            ast.While: self._while,
            ast.Try: self._try,
            ast.With: self._with,
            ast.AsyncWith: self._with,
            ast.Return: self._return,
            ast.Raise: self._raise,
            ast.Break: self._leave,
            ast.Continue: self._leave,
            ast.Import: self._import,
            ast.ImportFrom: self._import,
            ast.FunctionDef: self._function,
            ast.AsyncFunctionDef: self._function,
            ast.ClassDef: self._class,
            ast.Assert: self._assert,
            ast.Delete: self._delete,
            ast.Global: self._global,
            ast.Nonlocal: self._nonlocal,
            ast.Match: self._match,
        }
        if hasattr(ast, "TryStar"):
            self._statements[ast.TryStar] = self._try

    @abstractmethod
    def import_names(self, node: ast.Import | ast.ImportFrom) -> None: ...

    def walk_body(self, closure: Closure) -> None:
        body = closure.node.body
        if isinstance(body, list):
            self.block(body)
        else:
            value = self.evaluate(body)
            self.frame.returns.append(value)
            self.record_return(value, self.place(body))

    def block(self, body: list[ast.stmt]) -> bool:
        if self.depth > DEEPEST:
            return True
        self.depth += 1
        before, goes_on = self.context, True
        for statement in body:
            self.end_if_enough()
            if self.stack:
                self.followed += 1
            walk = self._statements.get(type(statement))
            if walk is not None and not walk(statement):
                goes_on = False
                break
        self.context = before
        self.depth -= 1
        return goes_on

    def _expression(self, node: ast.Expr) -> bool:
        if isinstance(node.value, ast.Call):
            self.depth += 1
            value = self.call(node.value, dropped=True)
            self.depth -= 1
            if isinstance(value, Call) and is_api(value.callee, *_ENDS):
                self.frame.ends_program = True
                return False
            if isinstance(value, Call) and value.method in _SKIPS:
                self.frame.ends_program = False
                return False
        elif not isinstance(node.value, ast.Constant):
            self.evaluate(node.value)
        return True

    def _assign(self, node: ast.Assign) -> bool:
        value = self.evaluate(node.value)
        for target in node.targets:
            self.assign(target, value)
        return True

    def _annotated(self, node: ast.AnnAssign) -> bool:
        if node.value is not None:
            self.assign(node.target, self.evaluate(node.value))
        elif self.scope.is_class and isinstance(node.target, ast.Name):
            self.bind(node.target.id, Unknown(self.place(node.target)))
        return True

    def _augmented(self, node: ast.AugAssign) -> bool:
        target = node.target
        if isinstance(target, ast.Name):
            old = self.find(target.id, target)
        elif isinstance(target, ast.Attribute):
            of = self.evaluate(target.value)
            old = joined(self.attribute_of(one, target.attr, self.place(target)) for one in options(of))
        else:
            old = self.evaluate(target)
        new = self.evaluate(node.value)
        self.assign(target, self.operation(node, OPERATORS[type(node.op)], old, new, True), augmented=True)
        return True

    def _if(self, node: ast.If) -> bool:
        test = self.evaluate(node.test)
        certain = known(test) if may_prune(node.test) else MISSING
        if certain is not MISSING:
            if not certain and self.module.name != "__main__" and is_main_test(node.test):
                self.module.main_blocks.append(node.body)
            return self.block(node.body if certain else node.orelse)
        asks, certain_arm = asks_whether_it_works(node.test, test), arm_of_wrapper(node.test)
        before, outer = self.scope.names, self.context
        ends: list[dict[str, Value]] = []
        branches = []
        for taken, body in ((True, node.body), (False, node.orelse)):
            branch = Branch(id(node), taken, test)
            self.scope.names = dict(before)
            guarded = outer.guarded or (asks and taken is not certain_arm)
            self.change_context(guarded=guarded, branches=(*outer.branches, branch))
            if self.block(body):
                ends.append(self.scope.names)
                branches.append(branch)
            self.context = outer
        if not ends:
            self.scope.names = before
            return False
        self.scope.names = merged_names(ends)
        if len(ends) == 1:  # what follows is the rest of the other arm
            branch = Branch(id(node), branches[0].taken, test, only=self.frame.ends_program)
            guarded = outer.guarded or (asks and branch.taken is not certain_arm)
            self.change_context(guarded=guarded, branches=(*outer.branches, branch))
        return True

    def _for(self, node: ast.For | ast.AsyncFor) -> bool:
        iterable = self.evaluate(node.iter)
        element = self.element(iterable, self.place(node.target))
        self._loop(node, lambda: self.assign(node.target, element), False)
        return True

    def _while(self, node: ast.While) -> bool:
        self._loop(node, lambda: self.evaluate(node.test), known_true(node.test))
        return True

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, start: Callable[[], object], at_least_once: bool) -> None:
        """The body is walked once. What it assigns is, at its start, the value from before or an unknown
        one."""
        before, outer = dict(self.scope.names), self.context
        assigned = _assigned_names(node)
        for name in assigned:
            old = self.scope.names.get(name)
            if old is not None:
                self.scope.names[name] = joined((old, Earlier(old.location)))
        self.change_context(loops=outer.loops + 1)
        start()
        self.frame.exits.append([])
        goes_on = self.block(node.body)
        ends = self.frame.exits.pop()
        if goes_on:
            ends.append(self.scope.names)
        if not at_least_once or not ends:
            ends.append(before)
        self.scope.names, self.context = merged_names(ends), outer
        for name in assigned & self.scope.names.keys():
            self.scope.names[name] = without_earlier(self.scope.names[name])
        self.block(node.orelse)

    def _leave(self, node: ast.Break | ast.Continue) -> bool:
        self.frame.ends_program = False
        if self.frame.exits:
            self.frame.exits[-1].append(dict(self.scope.names))
        return False

    def _try(self, node: ast.Try) -> bool:
        before, outer = self.scope.names, self.context
        self.scope.names = dict(before)
        asks = any(is_guarding_handler(handler) for handler in node.handlers)
        if asks:
            self.change_context(guarded=True)
        swallowing = swallowing_handler(node)
        if asks:
            place = None if swallowing is None else self.module.source.location(swallowing)
            self.change_context(swallowed=place)
        goes_on = self.block(node.body)
        after_body = self.scope.names
        self.context = outer
        ends: list[dict[str, Value]] = []
        anywhere = merged_names([before, after_body])
        if goes_on and self.block(node.orelse):
            ends.append(self.scope.names)
        for handler in node.handlers:
            self.scope.names = dict(anywhere)
            if handler.type is not None:
                self.evaluate(handler.type)
            if handler.name is not None:
                self.bind(handler.name, Unknown(self.module.source.location(handler)))
            # What stands in a handler is what the program does where the other way did not work.
            guarded = outer.guarded or is_guarding_handler(handler)
            self.change_context(guarded=guarded, branches=(*outer.branches, Branch(id(handler), True)))
            if self.block(handler.body):
                ends.append(self.scope.names)
            self.context = outer
        self.scope.names = merged_names(ends) if ends else anywhere
        return self.block(node.finalbody) and bool(ends)

    def _with(self, node: ast.With | ast.AsyncWith) -> bool:
        outer, entered = self.context, []
        for item in node.items:
            value = self.evaluate(item.context_expr)
            entered.append((value, self.place(item.context_expr), self.context, self.next_order()))
            self.change_context(withs=(*self.context.withs, value), guarded=self.context.guarded or _is_guarding(value))
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value)
        goes_on = self.block(node.body)
        self.context = outer
        for value, location, context, order in reversed(entered):
            self.record_with(value, location, context, order)
        return goes_on or any(_is_guarding(value) for value, *_ in entered)

    def _return(self, node: ast.Return) -> bool:
        value = Known(self.place(node), None) if node.value is None else self.evaluate(node.value)
        self.frame.returns.append(value)
        self.frame.ends_program = False
        if node.value is not None:
            self.record_return(value, self.place(node.value))
        return False

    def _raise(self, node: ast.Raise) -> bool:
        for part in (node.exc, node.cause):
            if part is not None:
                self.evaluate(part)
        self.frame.ends_program = True
        return False

    def _import(self, node: ast.Import | ast.ImportFrom) -> bool:
        self.import_names(node)
        return True

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        self.define_function(node)
        return True

    def _class(self, node: ast.ClassDef) -> bool:
        self.define_class(node)
        return True

    def _assert(self, node: ast.Assert) -> bool:
        self.evaluate(node.test)
        return True

    def _delete(self, node: ast.Delete) -> bool:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.scope.forget(target.id)
        return True

    def _global(self, node: ast.Global) -> bool:
        self.scope.redirected.update(dict.fromkeys(node.names, self.scope.module))
        return True

    def _nonlocal(self, node: ast.Nonlocal) -> bool:
        for name in node.names:
            scope = self.scope.parent
            while scope is not None and name not in scope.names:
                scope = scope.parent
            if scope is not None:
                self.scope.redirected[name] = scope
        return True

    def _match(self, node: ast.Match) -> bool:
        subject = self.evaluate(node.subject)
        before, outer, ends = self.scope.names, self.context, []
        for case in node.cases:
            self.scope.names = dict(before)
            self.change_context(branches=(*outer.branches, Branch(id(case), True, subject)))
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                if isinstance(name, str):
                    self.bind(name, Unknown(subject.location))
            if case.guard is not None:
                self.evaluate(case.guard)
            if self.block(case.body):
                ends.append(self.scope.names)
            self.context = outer
        self.scope.names = merged_names([before, *ends])
        return True


def known_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)


def _is_guarding(value: Value) -> bool:
    callee = value.callee if isinstance(value, Call) else None
    return isinstance(callee, (Api, Attribute)) and is_guarding_context(callee.name)


def _assigned_names(node: ast.For | ast.AsyncFor | ast.While) -> frozenset[str]:
    """Names that the loop's body may bind, remembered on the node."""
    names = getattr(node, "assigned", None)
    if names is None:
        names = frozenset(
            one.id
            for statement in node.body
            for one in ast.walk(statement)
            if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)
        )
        node.assigned = names  # type: ignore[union-attr]
    assert isinstance(names, frozenset)
    return names
