"""Trees of settings: objects of libraries that are dicts whose items are attributes as well."""

from __future__ import annotations

from mpdoctor.program.values import Call, Value, is_api

TREES = (
    *("omegaconf.OmegaConf.create", "types.SimpleNamespace", "argparse.Namespace", "easydict.EasyDict", "box.Box"),
    *("ml_collections.ConfigDict", "ml_collections.config_dict.ConfigDict", "munch.munchify", "munch.Munch"),
)


def is_empty_tree(value: Value) -> bool:
    """`ConfigDict()`, which is given its settings one by one."""
    is_made = isinstance(value, Call) and not value.given and not value.open
    return is_made and isinstance(value, Call) and is_api(value.callee, *TREES)
