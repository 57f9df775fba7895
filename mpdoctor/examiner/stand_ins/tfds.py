"""Makes up datasets of tensorflow_datasets with its own mocking tools: features, decoders and arguments stay."""

from __future__ import annotations

from types import ModuleType
from typing import Any

EXAMPLES = 512  # that are made; what the splits say of themselves is as in the real ones
# How many examples the splits really have, which is known only after a download.
SPLITS = {
    "ag_news_subset": {"train": 120000, "test": 7600},
    "beans": {"train": 1034, "validation": 133, "test": 128},
    "cats_vs_dogs": {"train": 23262},
    "cifar10": {"train": 50000, "test": 10000},
    "cifar100": {"train": 50000, "test": 10000},
    "emnist": {"train": 697932, "test": 116323},
    "fashion_mnist": {"train": 60000, "test": 10000},
    "food101": {"train": 75750, "validation": 25250},
    "horses_or_humans": {"train": 1027, "test": 256},
    "imdb_reviews": {"train": 25000, "test": 25000, "unsupervised": 50000},
    "iris": {"train": 150},
    "kmnist": {"train": 60000, "test": 10000},
    "malaria": {"train": 27558},
    "mnist": {"train": 60000, "test": 10000},
    "oxford_flowers102": {"train": 1020, "validation": 1020, "test": 6149},
    "oxford_iiit_pet": {"train": 3680, "test": 3669},
    "patch_camelyon": {"train": 262144, "validation": 32768, "test": 32768},
    "rock_paper_scissors": {"train": 2520, "test": 372},
    "stanford_dogs": {"train": 12000, "test": 8580},
    "stl10": {"train": 5000, "test": 8000, "unlabelled": 100000},
    "svhn_cropped": {"train": 73257, "test": 26032, "extra": 531131},
    "tf_flowers": {"train": 3670},
    "titanic": {"train": 1309},
}


def dataset_from_call(
    module: ModuleType,
    name: str,
    *,
    split: Any = None,
    data_dir: Any = None,
    batch_size: int | None = None,
    shuffle_files: bool = False,
    as_supervised: bool = False,
    decoders: Any = None,
    read_config: Any = None,
    with_info: bool = False,
    builder_kwargs: dict[str, Any] | None = None,
    **others: Any,
) -> Any:
    """What `tensorflow_datasets.load` would return; None for a data set that is not known here. The arguments are its
    own; `others` are about the download."""
    known = SPLITS.get(name.partition("/")[0].partition(":")[0])
    if known is None:
        return None
    tfds: Any = module
    builder = tfds.builder(name, data_dir=data_dir, **(builder_kwargs or {}))
    with tfds.testing.mock_data(num_examples=EXAMPLES):
        if not builder.info.splits:
            infos = [
                tfds.core.SplitInfo(name=split, shard_lengths=[count], num_bytes=0, filename_template=None)
                for split, count in known.items()
            ]
            builder.info.set_splits(tfds.core.splits.SplitDict(infos))
        made = builder.as_dataset(
            split=split,
            batch_size=batch_size,
            shuffle_files=shuffle_files,
            as_supervised=as_supervised,
            decoders=decoders,
            read_config=read_config,
        )
    return (made, builder.info) if with_info else made
