"""Trees of settings: objects of libraries that are dicts whose items are attributes as well."""

from __future__ import annotations

from mpdoctor.facts.location import Location
from mpdoctor.program.events import Call
from mpdoctor.program.values import Collection, Known, Value, is_api

MOST_CHARACTERS = 2000  # of a text that is read as JSON
TREES = (
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
    """Whether it is `ConfigDict()`, which is given its settings one by one."""
    if not isinstance(value, Call) or value.args or value.keywords or value.open:
        return False
    return is_api(value.callee, *TREES)
