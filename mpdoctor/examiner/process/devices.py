"""The devices that this TensorFlow computes on."""

from __future__ import annotations

import os
import platform
import re

import tensorflow as tf

from mpdoctor.facts.machine.devices import DeviceFacts

_CPU_LISTS = "/proc/cpuinfo"
_TF32_SINCE = (8, 0)  # compute capability
_NUMBERS_OF_16_BITS = re.compile(r"\b(?:amx_\w+|avx512_(?:bf16|fp16)|bf16|fphp|asimdhp)\b")


def devices_from_tensorflow(program_has_computed: bool = True) -> tuple[DeviceFacts, ...]:
    """The devices that the program can see, the CPU last. Not to be called before the program has chosen among them.

    `program_has_computed`: TensorFlow's runtime is up, so that asking it for remote TPUs costs nothing."""
    devices = tf.config.get_visible_devices()
    if program_has_computed and not any(device.device_type == "TPU" for device in devices):
        devices = tf.config.list_logical_devices("TPU") + devices
    known = [_device(device) for device in devices if device.device_type != "TPU_SYSTEM"]
    return tuple(sorted(known, key=lambda device: device.kind == "CPU"))


def _device(device: tf.config.PhysicalDevice) -> DeviceFacts:
    kind = str(device.device_type)
    if kind == "CPU":
        return DeviceFacts(kind, *_cpu())
    if kind != "GPU":
        return DeviceFacts(kind)
    details = tf.config.experimental.get_device_details(device)
    given = details.get("compute_capability")
    capability = None if given is None else (int(given[0]), int(given[1]))
    name = str(details.get("device_name", ""))
    return DeviceFacts(kind, name, capability, uses_tf32=capability is not None and _uses_tf32(capability))


def _uses_tf32(capability: tuple[int, int]) -> bool:
    """Whether float32 is multiplied in TensorFloat-32, as TensorFlow does by default, unless the program or NVIDIA's
    variable says otherwise."""
    is_on = tf.config.experimental.tensor_float_32_execution_enabled()
    return capability >= _TF32_SINCE and bool(is_on) and os.environ.get("NVIDIA_TF32_OVERRIDE") != "0"


def _cpu() -> tuple[str, None, tuple[str, ...]]:
    try:
        with open(_CPU_LISTS, encoding="utf-8", errors="replace") as file:
            text = file.read(20000)
    except OSError:  # not Linux
        return platform.processor(), None, ()
    model = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", text, re.MULTILINE)
    instructions = _NUMBERS_OF_16_BITS.findall(flags.group(1)) if flags else []
    return model.group(1) if model else platform.processor(), None, tuple(sorted(set(instructions)))
