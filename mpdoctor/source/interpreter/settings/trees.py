"""Trees of settings: objects of libraries that are dicts whose items are attributes as well."""

from __future__ import annotations

from mpdoctor.facts.location import Location
from mpdoctor.program.command_line import MERGED
from mpdoctor.program.events import Call
from mpdoctor.program.values import Api, Attribute, Collection, Known, Value, is_api
from mpdoctor.source.interpreter.settings.structured import as_defaults
from mpdoctor.source.interpreter.state.interpreter_state import State

MOST_CHARACTERS = 2000  # of a text that is read as JSON
NODES = ("yacs.config.CfgNode", "fvcore.common.config.CfgNode")  # made to have a file of settings merged into them
TREES = (
    *NODES,
    *("omegaconf.OmegaConf.create", "types.SimpleNamespace", "argparse.Namespace", "easydict.EasyDict", "box.Box"),
    *("ml_collections.ConfigDict", "ml_collections.config_dict.ConfigDict", "munch.munchify", "munch.Munch"),
)


def kept_by_name(value: Value, name: str) -> Value | None:
    """`checkpoint.optimizer`, which tf.train.Checkpoint was given as `optimizer=`."""
    if not isinstance(value, Call) or not value.keywords or not is_api(value.callee, "tensorflow.train.Checkpoint"):
        return None
    return value.keyword(name)


def value_from_json(text: object, location: Location) -> Value | None:
    """What `json.loads` makes of a text that the program writes out; None of any other."""
    if not isinstance(text, str) or len(text) > MOST_CHARACTERS:
        return None
    import json  # which few programs ask for, and every check would wait for

    try:
        return _value_of_json(json.loads(text), location)
    except (ValueError, RecursionError):
        return None


def _value_of_json(held: object, location: Location) -> Value:
    if isinstance(held, dict):
        items = tuple(_value_of_json(item, location) for item in held.values())
        return Collection(location, "dict", items, tuple(Known(location, key) for key in held))
    if isinstance(held, list):
        return Collection(location, "list", tuple(_value_of_json(item, location) for item in held))
    return Known(location, held)


def is_empty_tree(value: Value) -> bool:
    """Whether it is `ConfigDict()`, which gets its settings one by one, or a clone of such a tree."""
    if not isinstance(value, Call) or value.args or value.open:
        return False
    if isinstance(value.callee, Attribute):
        return value.callee.name == "clone" and not value.keywords and is_empty_tree(value.callee.of)
    return is_api(value.callee, *TREES) and all(name == "new_allowed" for name, _ in value.keywords)


def setting_of_tree(state: State, tree: Value, name: str, location: Location) -> Value | None:
    """What such a tree was given under a name, or the tree that it is a clone of; of a node the default of what a file
    may say. None where nothing was given."""
    value = state.attributes.get(id(tree), {}).get(name)
    while value is None and isinstance(tree, Call) and isinstance(tree.callee, Attribute):
        tree = tree.callee.of
        value = state.attributes.get(id(tree), {}).get(name)
    if value is None or not isinstance(tree, Call) or not is_api(tree.callee, *NODES):
        return value
    return as_defaults(state, value, Api(location, MERGED), Known(location, name))
