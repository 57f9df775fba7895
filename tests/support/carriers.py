"""Ways in which Python code carries a value from where it is made to where it is used.

In each template `MAKE` is the expression that makes the value, `make` a function that gives it, and `USE(…)`, alone on
its line, the statement that uses it.
"""

from __future__ import annotations

import re

CARRIERS = {
    "direct": "USE(MAKE)",
    "variable": "value = MAKE\nUSE(value)",
    "function": "USE(make())",
    "annotated": "value: typing.Any = MAKE\nUSE(value)",
    "tuple": "first, value = None, MAKE\nUSE(value)",
    "tuple_index": "pair = (None, MAKE)\nUSE(pair[1])",
    "nested_tuple": "(a, (b, value)) = (1, (2, MAKE))\nUSE(value)",
    "chained": "a = value = MAKE\nUSE(value)",
    "walrus": "if (value := MAKE) is not None:\n    USE(value)",
    "ternary": "value = MAKE if True else None\nUSE(value)",
    "or": "value = None or MAKE\nUSE(value)",
    "default_none": "def run(value=None):\n    value = value if value is not None else MAKE\n    USE(value)\nrun()",
    "default_none_if": "def run(value=None):\n    if value is None:\n        value = MAKE\n    USE(value)\nrun()",
    "default": "def run(value=MAKE):\n    USE(value)\nrun()",
    "kwonly": "def run(*, value):\n    USE(value)\nrun(value=MAKE)",
    "argument": "def run(value):\n    USE(value)\nrun(MAKE)",
    "star": "def run(value):\n    USE(value)\nargs = [MAKE]\nrun(*args)",
    "starstar": "def run(value):\n    USE(value)\noptions = {'value': MAKE}\nrun(**options)",
    "dict_call": "def run(value):\n    USE(value)\noptions = dict(value=MAKE)\nrun(**options)",
    "dict_merge": "def run(value, other):\n    USE(value)\nrun(**{**{'other': 1}, **{'value': MAKE}})",
    "dict_or": "base = {'other': 1}\noptions = base | {'value': MAKE}\nUSE(options['value'])",
    "dict_index": "options = {'value': MAKE}\nUSE(options['value'])",
    "dict_nested": "options = {'train': {'value': MAKE}}\nUSE(options['train']['value'])",
    "dict_get": "options = {'value': MAKE}\nUSE(options.get('value'))",
    "dict_get_default": "options = {}\nUSE(options.get('value', MAKE))",
    "dict_set": "options = {}\noptions['value'] = MAKE\nUSE(options['value'])",
    "dict_update": "options = {}\noptions.update(value=MAKE)\nUSE(options['value'])",
    "dict_update_dict": "options = {}\noptions.update({'value': MAKE})\nUSE(options['value'])",
    "dict_setdefault": "options = {}\noptions.setdefault('value', MAKE)\nUSE(options['value'])",
    "dict_pop": "options = {'value': MAKE}\nvalue = options.pop('value')\nUSE(value)",
    "dict_items": "options = {'value': MAKE}\nfor key, value in options.items():\n    USE(value)",
    "dict_values": "options = {'value': MAKE}\nfor value in options.values():\n    USE(value)",
    "dict_loop": "options = {'value': MAKE}\nfor key in options:\n    USE(options[key])",
    "dict_comp": "options = {name: make() for name in ['a', 'b']}\nUSE(options['a'])",
    "dict_copy": "options = {'value': MAKE}\nmore = dict(options)\nUSE(more['value'])",
    "dict_copy_method": "options = {'value': MAKE}\nmore = options.copy()\nUSE(more['value'])",
    "defaultdict": "options = collections.defaultdict(lambda: MAKE)\nUSE(options['value'])",
    "defaultdict_list": """\
options = collections.defaultdict(list)
options['value'].append(MAKE)
USE(options['value'][0])""",
    "setdefault_list": "options = {}\noptions.setdefault('value', []).append(MAKE)\nUSE(options['value'][0])",
    "setdefault_dict": "options = {}\noptions.setdefault('a', {})['b'] = MAKE\nUSE(options['a']['b'])",
    "dict_update_loop": "options = {}\nfor i in range(2):\n    options.update(value=make())\nUSE(options['value'])",
    "setdefault_loop": """\
options = {}
for name in ['a', 'b']:
    options.setdefault(name, []).append(make())
USE(options['a'][0])""",
    "ordered": "options = collections.OrderedDict([('value', MAKE)])\nUSE(options['value'])",
    "list_index": "values = [MAKE]\nUSE(values[0])",
    "list_last": "values = [None]\nvalues.append(MAKE)\nUSE(values[-1])",
    "list_loop": "for value in [MAKE]:\n    USE(value)",
    "list_loop_index": "values = [MAKE]\nfor i in range(len(values)):\n    USE(values[i])",
    "list_none_index": "values = [None] * 2\nvalues[1] = MAKE\nUSE(values[1])",
    "list_filled": "def fill(into):\n    into.append(MAKE)\nvalues = []\nfill(values)\nUSE(values[0])",
    "dict_filled": """\
def fill(into, key):
    into[key] = MAKE
values = {}
fill(into=values, key='a')
USE(values['a'])""",
    "dict_filled_inside": """\
def fill(into):
    into['values'].append(MAKE)
    return into
def run(into):
    fill(into)
options = {'values': []}
run(options)
USE(options['values'][0])""",
    "list_append_loop": """\
values = []
for i in range(2):
    values.append(make())
for value in values:
    USE(value)""",
    "list_comp": "values = [make() for _ in range(2)]\nUSE(values[0])",
    "list_extend": "values = []\nvalues.extend([MAKE])\nUSE(values[0])",
    "list_plus": "values = [None] + [MAKE]\nUSE(values[1])",
    "list_iadd": "values = []\nvalues += [MAKE]\nUSE(values[0])",
    "list_unpack": "values = [*[MAKE]]\nUSE(values[0])",
    "list_pop": "values = [MAKE]\nUSE(values.pop())",
    "enumerate": "for i, value in enumerate([MAKE]):\n    USE(value)",
    "zip": "for value, other in zip([MAKE], [1]):\n    USE(value)",
    "reversed": "for value in reversed([MAKE]):\n    USE(value)",
    "chain": "for value in itertools.chain([MAKE], [make()]):\n    USE(value)",
    "chain_one": "for value in itertools.chain([MAKE]):\n    USE(value)",
    "next_iter": "value = next(iter([MAKE]))\nUSE(value)",
    "map": "for value in map(lambda _: MAKE, range(2)):\n    USE(value)",
    "map_list": "values = list(map(lambda _: MAKE, range(2)))\nUSE(values[0])",
    "genexp": "for value in (make() for _ in range(2)):\n    USE(value)",
    "generator": "def values():\n    yield MAKE\nfor value in values():\n    USE(value)",
    "yield_from": """\
def inner():
    yield MAKE
def values():
    yield from inner()
for value in values():
    USE(value)""",
    "generator_next": "def values():\n    yield MAKE\nUSE(next(values()))",
    "deque": "values = collections.deque()\nvalues.append(MAKE)\nUSE(values[0])",
    "namedtuple": "Out = collections.namedtuple('Out', 'other value')\nout = Out(1, MAKE)\nUSE(out.value)",
    "namedtuple_unpack": """\
Out = collections.namedtuple('Out', 'other value')
other, value = Out(1, MAKE)
USE(value)""",
    "NamedTuple": """\
class Out(typing.NamedTuple):
    other: int
    value: typing.Any
out = Out(other=1, value=MAKE)
USE(out.value)""",
    "NamedTuple_default": "class Out(typing.NamedTuple):\n    value: typing.Any = MAKE\nUSE(Out().value)",
    "dataclass": """\
@dataclasses.dataclass
class Out:
    other: int
    value: typing.Any
out = Out(1, MAKE)
USE(out.value)""",
    "dataclass_factory": """\
@dataclasses.dataclass
class Out:
    value: typing.Any = dataclasses.field(default_factory=make)
USE(Out().value)""",
    "dataclass_post": """\
@dataclasses.dataclass
class Out:
    other: int = 1
    def __post_init__(self):
        self.value = MAKE
USE(Out().value)""",
    "dataclass_replace": """\
@dataclasses.dataclass
class Out:
    value: typing.Any = None
out = dataclasses.replace(Out(), value=MAKE)
USE(out.value)""",
    "namespace": "out = types.SimpleNamespace(value=MAKE)\nUSE(out.value)",
    "return_dict": "def run():\n    return {'other': 1, 'value': MAKE}\nUSE(run()['value'])",
    "return_tuple": "def run():\n    return 1, MAKE\n_, value = run()\nUSE(value)",
    "return_tuple_index": "def run():\n    return 1, MAKE\nUSE(run()[1])",
    "return_branch": """\
def run(kind):
    if kind == 'a':
        return MAKE
    raise ValueError(kind)
USE(run('a'))""",
    "return_branches": """\
def run(kind):
    if kind == 'b':
        return None
    elif kind == 'a':
        return MAKE
USE(run('a'))""",
    "match": """\
def run(kind):
    match kind:
        case 'a':
            return MAKE
        case _:
            raise ValueError(kind)
USE(run('a'))""",
    "try": "try:\n    value = MAKE\nexcept ValueError:\n    raise\nUSE(value)",
    "try_else": "try:\n    value = MAKE\nexcept ValueError:\n    raise\nelse:\n    USE(value)",
    "try_finally": "try:\n    value = MAKE\nfinally:\n    print('done')\nUSE(value)",
    "while": "n = 0\nwhile n < 2:\n    value = MAKE\n    USE(value)\n    n += 1",
    "lambda": "f = lambda: MAKE\nUSE(f())",
    "partial": "def give(value):\n    return value\nf = functools.partial(give, value=MAKE)\nUSE(f())",
    "partial_use": "def run(value, other):\n    USE(value)\nf = functools.partial(run, MAKE)\nf(1)",
    "closure": "def outer(value):\n    def inner():\n        USE(value)\n    return inner\nouter(MAKE)()",
    "nonlocal": """\
def outer():
    value = None
    def inner():
        nonlocal value
        value = MAKE
    inner()
    USE(value)
outer()""",
    "global": "VALUE = None\ndef run():\n    global VALUE\n    VALUE = MAKE\nrun()\nUSE(VALUE)",
    "constant": "VALUE = MAKE\ndef run():\n    USE(VALUE)\nrun()",
    "attribute": """\
class T:
    def __init__(self):
        self.value = MAKE
    def run(self):
        USE(self.value)
T().run()""",
    "attribute_argument": """\
class T:
    def __init__(self, value):
        self.value = value
    def run(self):
        USE(self.value)
T(MAKE).run()""",
    "attribute_later": """\
class T:
    def __init__(self):
        self.value = None
    def build(self):
        self.value = MAKE
    def run(self):
        self.build()
        USE(self.value)
T().run()""",
    "attribute_outside": "class T:\n    pass\nt = T()\nt.value = MAKE\nUSE(t.value)",
    "attribute_chain": """\
class A:
    def __init__(self):
        self.value = MAKE
class B:
    def __init__(self, a):
        self.a = a
    def run(self):
        USE(self.a.value)
B(A()).run()""",
    "class_attribute": "class T:\n    value = MAKE\n    def run(self):\n        USE(self.value)\nT().run()",
    "class_config": "class Config:\n    value = MAKE\nUSE(Config.value)",
    "class_attribute_inherited": "class A:\n    value = MAKE\nclass B(A):\n    pass\nUSE(B().value)",
    "class_overridden": """\
class A:
    value = None
    def run(self):
        USE(self.value)
class B(A):
    value = MAKE
B().run()""",
    "method_overridden": """\
class A:
    def make(self):
        raise NotImplementedError
    def run(self):
        USE(self.make())
class B(A):
    def make(self):
        return MAKE
B().run()""",
    "abstract": """\
class A(abc.ABC):
    @abc.abstractmethod
    def make(self): ...
    def run(self):
        USE(self.make())
class B(A):
    def make(self):
        return MAKE
B().run()""",
    "super": """\
class A:
    def make(self):
        return MAKE
class B(A):
    def make(self):
        return super().make()
USE(B().make())""",
    "super_init": """\
class A:
    def __init__(self, value):
        self.value = value
class B(A):
    def __init__(self):
        super().__init__(MAKE)
USE(B().value)""",
    "mixin": """\
class M:
    def run(self):
        USE(self.make())
class T(M):
    def make(self):
        return MAKE
T().run()""",
    "property": "class T:\n    @property\n    def value(self):\n        return MAKE\nUSE(T().value)",
    "cached_property": """\
class T:
    @functools.cached_property
    def value(self):
        return MAKE
USE(T().value)""",
    "property_setter": """\
class T:
    @property
    def value(self):
        return self._value
    @value.setter
    def value(self, value):
        self._value = value
t = T()
t.value = MAKE
USE(t.value)""",
    "staticmethod": "class T:\n    @staticmethod\n    def make():\n        return MAKE\nUSE(T.make())",
    "classmethod": "class T:\n    @classmethod\n    def make(cls):\n        return MAKE\nUSE(T.make())",
    "alternative_constructor": """\
class T:
    def __init__(self, value):
        self.value = value
    @classmethod
    def build(cls):
        return cls(MAKE)
USE(T.build().value)""",
    "builder": """\
class T:
    def with_value(self, value):
        self.value = value
        return self
USE(T().with_value(MAKE).value)""",
    "singleton": """\
class T:
    _instance = None
    def __new__(cls):
        if cls._instance is None:
            cls._instance = super().__new__(cls)
            cls._instance.value = MAKE
        return cls._instance
USE(T().value)""",
    "call": "class T:\n    def __call__(self):\n        return MAKE\nUSE(T()())",
    "getitem": "class T:\n    def __getitem__(self, i):\n        return MAKE\nUSE(T()[0])",
    "iter": "class T:\n    def __iter__(self):\n        yield MAKE\nfor value in T():\n    USE(value)",
    "iter_next": """\
class T:
    def __iter__(self):
        return self
    def __next__(self):
        return MAKE
for value in T():
    USE(value)""",
    "getattr_class": "class T:\n    def __getattr__(self, name):\n        return MAKE\nUSE(T().value)",
    "setattr": "class T:\n    pass\nt = T()\nsetattr(t, 'value', MAKE)\nUSE(t.value)",
    "getattr": "class T:\n    value = MAKE\nUSE(getattr(T, 'value'))",
    "getattr_default": "class T:\n    pass\nUSE(getattr(T, 'value', MAKE))",
    "dict_attribute": """\
class T:
    def __init__(self, **options):
        self.__dict__.update(options)
USE(T(value=MAKE).value)""",
    "kwargs_pop": "def run(**options):\n    value = options.pop('value', None)\n    USE(value)\nrun(value=MAKE)",
    "kwargs_get": "def run(**options):\n    USE(options.get('value'))\nrun(value=MAKE)",
    "kwargs_forward": "def run(value):\n    USE(value)\ndef outer(**options):\n    run(**options)\nouter(value=MAKE)",
    "args_forward": "def run(value):\n    USE(value)\ndef outer(*args):\n    run(*args)\nouter(MAKE)",
    "decorator": """\
def log(f):
    @functools.wraps(f)
    def inner(*args, **options):
        return f(*args, **options)
    return inner
@log
def run():
    return MAKE
USE(run())""",
    "decorator_plain": """\
def log(f):
    def inner(*args, **options):
        result = f(*args, **options)
        return result
    return inner
@log
def run(value):
    USE(value)
run(MAKE)""",
    "decorator_arguments": """\
def retry(n):
    def wrap(f):
        @functools.wraps(f)
        def inner(*args, **options):
            for _ in range(n):
                return f(*args, **options)
        return inner
    return wrap
@retry(3)
def run():
    return MAKE
USE(run())""",
    "decorator_class": """\
class Log:
    def __init__(self, f):
        self.f = f
    def __call__(self, *args):
        return self.f(*args)
@Log
def run():
    return MAKE
USE(run())""",
    "lru_cache": "@functools.lru_cache(maxsize=None)\ndef run():\n    return MAKE\nUSE(run())",
    "registry": """\
REGISTRY = {}
def register(name):
    def wrap(f):
        REGISTRY[name] = f
        return f
    return wrap
@register('a')
def run():
    return MAKE
USE(REGISTRY['a']())""",
    "registry_plain": """\
REGISTRY = {}
def register(f):
    REGISTRY[f.__name__] = f
    return f
@register
def run():
    return MAKE
USE(REGISTRY['run']())""",
    "dispatch": "TABLE = {'a': make}\nUSE(TABLE['a']())",
    "dispatch_variable": "TABLE = {'a': make}\ndef run(kind):\n    return TABLE[kind]()\nUSE(run('a'))",
    "dispatch_get": "TABLE = {'a': make}\nUSE(TABLE.get('a')())",
    "dispatch_lambda": "TABLE = {'a': lambda: MAKE}\nUSE(TABLE['a']())",
    "enum": "class Kind(enum.Enum):\n    A = 'a'\nTABLE = {Kind.A: MAKE}\nUSE(TABLE[Kind.A])",
    "enum_value": "class Kind(enum.Enum):\n    A = MAKE\nUSE(Kind.A.value)",
    "context_manager": """\
@contextlib.contextmanager
def scope():
    yield MAKE
with scope() as value:
    USE(value)""",
    "context_class": """\
class Scope:
    def __enter__(self):
        return MAKE
    def __exit__(self, *args):
        return None
with Scope() as value:
    USE(value)""",
    "context_self": """\
class Scope:
    def __enter__(self):
        self.value = MAKE
        return self
    def __exit__(self, *args):
        return None
with Scope() as scope:
    USE(scope.value)""",
    "nullcontext": "with contextlib.nullcontext(MAKE) as value:\n    USE(value)",
    "copy": "value = copy.copy([MAKE])[0]\nUSE(value)",
    "itemgetter": "value = operator.itemgetter('value')({'value': MAKE})\nUSE(value)",
    "attrgetter": "out = types.SimpleNamespace(value=MAKE)\nUSE(operator.attrgetter('value')(out))",
    "methodcaller": "class T:\n    def make(self):\n        return MAKE\nUSE(operator.methodcaller('make')(T()))",
    "reduce": "value = functools.reduce(lambda a, b: b, [None, MAKE])\nUSE(value)",
    "recursion": "def run(n):\n    if n == 0:\n        return MAKE\n    return run(n - 1)\nUSE(run(len(sys.argv)))",
    "singledispatch": "@functools.singledispatch\ndef run(x):\n    return MAKE\nUSE(run(1))",
    "callback_argument": "def run(f):\n    return f()\nUSE(run(make))",
    "callback_lambda": "def run(f):\n    return f()\nUSE(run(lambda: MAKE))",
    "method_reference": "class T:\n    def make(self):\n        return MAKE\nf = T().make\nUSE(f())",
    "method_of_class": "class T:\n    def make(self):\n        return MAKE\nUSE(T.make(T()))",
    "nested_class": "class T:\n    class Inner:\n        value = MAKE\nUSE(T.Inner.value)",
    "self_dict": """\
class T:
    def __init__(self):
        self.parts = {}
        self.parts['value'] = MAKE
    def run(self):
        USE(self.parts['value'])
T().run()""",
    "self_list": """\
class T:
    def __init__(self):
        self.parts = []
        for _ in range(2):
            self.parts.append(make())
    def run(self):
        for value in self.parts:
            USE(value)
T().run()""",
    "self_tuple": """\
class T:
    def __init__(self):
        self.first, self.value = self.build()
    def build(self):
        return 1, MAKE
    def run(self):
        USE(self.value)
T().run()""",
    "main_guard": "def main():\n    value = MAKE\n    USE(value)\nif __name__ == '__main__':\n    main()",
    "async": """\
import asyncio
async def run():
    return MAKE
async def main():
    value = await run()
    USE(value)
asyncio.run(main())""",
    "type_call": "class T:\n    value = MAKE\nt = T()\nUSE(type(t).value)",
    "class_choice": "class A:\n    value = MAKE\nclass B:\n    value = None\ncls = A if True else B\nUSE(cls.value)",
    "class_table": "class A:\n    def make(self):\n        return MAKE\nTABLE = {'a': A}\nUSE(TABLE['a']().make())",
    "argparse_namespace": "options = argparse.Namespace(value=MAKE)\nUSE(options.value)",
    "globals": "def make_more():\n    return MAKE\nUSE(globals()['make_more']())",
    "vars": "out = types.SimpleNamespace(value=MAKE)\nUSE(vars(out)['value'])",
    "in_function": """\
def run():
    def make_more():
        return MAKE
    value = make_more()
    return value
USE(run())""",
    "conditional_function": """\
if True:
    def give():
        return MAKE
else:
    def give():
        return None
USE(give())""",
    "starred": "first, *rest = [None, MAKE]\nUSE(rest[0])",
    "slice": "values = [None, MAKE]\nUSE(values[1:][0])",
    "for_else": "for _ in range(1):\n    value = MAKE\nelse:\n    USE(value)",
    "sum_lists": "values = sum([[MAKE], [None]], [])\nUSE(values[0])",
    "sorted": "values = sorted([(2, MAKE), (1, make())], key=lambda p: p[0])\nUSE(values[0][1])",
    "any_filter": "values = list(filter(None, [MAKE]))\nUSE(values[0])",
    "filter_is": "values = [v for v in [MAKE] if v is not None]\nUSE(values[0])",
    "mapping_proxy": "options = types.MappingProxyType({'value': MAKE})\nUSE(options['value'])",
    "chainmap": "options = collections.ChainMap({'value': MAKE}, {})\nUSE(options['value'])",
}
IMPORTS = """\
import abc, argparse, collections, contextlib, copy, dataclasses, enum, functools, itertools, operator
import sys, types, typing
import tensorflow as tf
from tensorflow import keras
"""


def script(carrier: str, before: str, make: str, use: str) -> str:
    """A script with `before`, then this carrier of what the expression `make` gives; `use` has `{}` where the value
    stands."""
    lines = []
    for line in CARRIERS[carrier].split("\n"):
        used = re.match(r"( *)USE\((.*)\)$", line)
        statements = use.replace("{}", used[2]).split("\n") if used else [line]
        lines += [f"{used[1]}{statement}" for statement in statements] if used else statements
    body = "\n".join(lines).replace("MAKE", make)
    return f"{IMPORTS}{before}def make():\n    return {make}\n{body}\n"
