"""The environment of a run: the interpreter, its TensorFlow and Keras, devices, and relevant variables."""

from __future__ import annotations

from dataclasses import field
from typing import Iterator, Mapping

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.machine.devices import DeviceFacts
from mpdoctor.facts.versions import LEGACY_KERAS, LEGACY_KERAS_ON, Keras, KerasPackage

# Distributions that bring the package `tensorflow`, the usual one first.
TENSORFLOWS = (
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-gpu",
    "tensorflow-intel",
    "tensorflow-macos",
    "tensorflow-rocm",
    "tf-nightly",
)
# Beside TensorFlow, what a bug report names.
PACKAGES = ("keras", "tf_keras", "numpy", "keras-hub", "tensorflow-addons", "tensorflow-metal", "horovod")
# Those that decide which Keras runs, on what, and in which precision.
VARIABLES = (
    "TF_USE_LEGACY_KERAS",
    "KERAS_BACKEND",
    "TF_ENABLE_AUTO_MIXED_PRECISION",
    "TF_ENABLE_AUTO_MIXED_PRECISION_GRAPH_REWRITE",
    "TF_ENABLE_AUTO_MIXED_PRECISION_LOSS_SCALING",
    "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_IGNORE_PERFORMANCE",
    "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_LEVEL",
    "NVIDIA_TF32_OVERRIDE",
    "TF_ENABLE_CUBLAS_TENSOR_OP_MATH_FP32",
    "TF_ENABLE_CUDNN_TENSOR_OP_MATH_FP32",
    "TF_ENABLE_ONEDNN_OPTS",
    "TF_SET_ONEDNN_FPMATH_MODE",
    "TF_GPU_ALLOCATOR",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_DETERMINISTIC_OPS",
    "TF_CUDNN_DETERMINISTIC",
    "TF_XLA_FLAGS",
    "XLA_FLAGS",
    "CUDA_VISIBLE_DEVICES",
)
CHOSEN = "Chosen interpreter"  # the label of one that nobody named, and why it was taken
RUN_AS = "Run as"  # how the script is run, where it is not by `python FILE`: a command, or the cells of a notebook
_TAKES_INSTALLED_KERAS_SINCE = (2, 15)


@dataclass(frozen=True)
class EnvironmentFacts:
    """The environment in which a program ran.

    python, executable, platform
        Of the interpreter that examines.
    packages
        Versions of what is installed there, by name of the distribution.
    tensorflow
        Its version; "" where there is none or it cannot be imported, and `problem` says why.
    cuda, cudnn
        Versions that this TensorFlow was built for; "" for one without CUDA.
    keras
        Which Keras `tf.keras` is, and why; None where that is not known.
    devices
        That TensorFlow computes on; () where the program came to its end before they were asked for.
    variables
        Those of VARIABLES that are set.
    saved_files
        What keeps the examination of a saved file from writing elsewhere, in words; "" where nobody looked.
    run_as
        The command by which Python runs the examined script: "python -m package.train"; "" where it is `python FILE`.
    """

    python: str = ""
    executable: str = ""
    platform: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    tensorflow: str = ""
    cuda: str = ""
    cudnn: str = ""
    keras: Keras | None = None
    devices: tuple[DeviceFacts, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    saved_files: str = ""
    run_as: str = ""

    @property
    def tensorflow_release(self) -> tuple[int, ...]:
        return Keras(tensorflow=self.tensorflow).tensorflow_release


def keras_of_tensorflow(tensorflow: str, packages: Mapping[str, str], variables: Mapping[str, str]) -> Keras | None:
    """Which Keras `tf.keras` is in this TensorFlow; None where its import would fail."""
    release = Keras(tensorflow=tensorflow).tensorflow_release[:2]
    if not release:
        return None
    if release < _TAKES_INSTALLED_KERAS_SINCE:
        # up to 2.5 it is a part of TensorFlow, with a version that says nothing
        version = packages.get("keras", "") if release >= (2, 6) else ""
        return Keras("tf.keras", version or tensorflow, tensorflow, "TensorFlow up to 2.14 has Keras 2")
    asked = variables.get(LEGACY_KERAS, "")
    if asked in LEGACY_KERAS_ON:
        version = packages.get("tf_keras", "")
        return Keras("tf_keras", version, tensorflow, f"{LEGACY_KERAS}={asked} is set") if version else None
    version = packages.get("keras", "")
    if not version:
        return None
    package: KerasPackage = "tf.keras" if version.startswith("2") else "keras"
    unless = f"{LEGACY_KERAS}={asked} asks for no other" if asked else f"{LEGACY_KERAS}=1 is not set"
    return Keras(package, version, tensorflow, f"it is the keras that is installed, and {unless}")


def labels_from_environment(environment: EnvironmentFacts) -> dict[str, str]:
    """The environment as texts by label: the block that `mpdoctor env` and every report show."""
    keras = environment.keras
    failed = f"none: {environment.problem}" if environment.problem else ""
    labels = {
        "Python": environment.python,
        "Interpreter": environment.executable,
        RUN_AS: environment.run_as,
        "System": environment.platform,
        "TensorFlow": environment.tensorflow or failed,
        "tf.keras": f"{keras}: {keras.because}" if keras is not None else failed if environment.tensorflow else "",
        **{("Keras" if name == "keras" else name): version for name, version in environment.packages.items()},
        "CUDA": environment.cuda and f"{environment.cuda} (build)",
        "cuDNN": environment.cudnn and f"{environment.cudnn} (build)",
    }
    if environment.tensorflow == labels.get("tensorflow"):
        del labels["tensorflow"]
    if environment.devices and not any(device.kind != "CPU" for device in environment.devices):
        built = "none that TensorFlow can use" if environment.cuda else "none: this TensorFlow was built without CUDA"
        labels["GPU"] = built
    for title, device in _titled(environment.devices):
        labels.update(_labels_from_device(title, device, environment.tensorflow_release))
    labels["Saved files"] = environment.saved_files
    labels.update(environment.variables)
    return {label: text for label, text in labels.items() if text}


def _labels_from_device(title: str, device: DeviceFacts, tensorflow: tuple[int, ...]) -> dict[str, str]:
    capability = device.compute_capability
    labels = {
        title: device.name or "of unknown name",
        f"{title} compute capability": "" if capability is None else "{}.{}".format(*capability),
        f"{title} float32": device.float32_products,
    }
    for dtype in HALF:
        outlook = device.outlook(dtype, tensorflow)
        labels[f"{title} {dtype}"] = f"{outlook.speed}: {outlook.why}"
    return labels


def _titled(devices: tuple[DeviceFacts, ...]) -> Iterator[tuple[str, DeviceFacts]]:
    """Names such as "CPU", "GPU 0", "GPU 1"."""
    counted: dict[str, int] = {}
    for device in devices:
        number = counted.setdefault(device.kind, 0)
        counted[device.kind] += 1
        yield device.kind if device.kind == "CPU" else f"{device.kind} {number}", device
