"""A sandbox for the examiner of a saved file: it writes only below a scratch directory and opens no TCP connection.

Landlock, a part of Linux since 5.13, takes rights away from a process and from whatever it starts, for good. Reading
and executing stay as they were. It knows no UDP, and neither permissions nor time stamps of files. What came with which
ABI: https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import ctypes
import errno
import glob
import os
import shutil
import stat
import struct
import sys
import tempfile
import threading
from typing import Iterator

# System calls; the same number wherever Linux runs TensorFlow.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_MACHINES = ("x86_64", "aarch64", "arm64", "ppc64le", "s390x", "riscv64", "loongarch64")
_ASK_FOR_ABI = 1
_BENEATH_PATH = 1
_NO_NEW_PRIVILEGES = 38  # prctl(2); Landlock asks for it
# Rights on files: the ABI that knows each of them first, and its bit.
_WRITE_FILE = 1 << 1
_REMOVE = 1 << 4 | 1 << 5  # directories, files
_MAKE_DEVICES = 1 << 6 | 1 << 11  # character, block: through a node of the disk's in the scratch all of it is written
_MAKE = 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12  # directory, file, socket, pipe, symbolic link
_REFER = 1 << 13  # rename and link between directories; without it they are always refused
_TRUNCATE = 1 << 14
_IOCTL_DEVICE = 1 << 15
_RIGHTS_SINCE = ((1, _WRITE_FILE | _REMOVE | _MAKE | _MAKE_DEVICES), (2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEVICE))
_CONNECTIONS_SINCE, _CONNECTIONS = 4, 0b11  # TCP: bind, connect
_SCOPES_SINCE, _SCOPES = 6, 0b11  # no abstract Unix socket, no signal leads outside
# Without their device nodes a check on an accelerator would silently become one on the CPU.
_ACCELERATORS = ("/dev/nvidia*", "/dev/nvhost*", "/dev/nvmap", "/dev/nvgpu", "/dev/kfd", "/dev/dri", "/dev/dxg")
# CUDA names its threads by writing to their files here, and does not start where it can't.
_OWN_THREADS = "/proc/self/task"
# What libraries keep, by the variable that says where.
_CACHES = {
    "TMPDIR": "",
    "TMP": "",
    "TEMP": "",
    "XDG_CACHE_HOME": "cache",
    "CUDA_CACHE_PATH": "cuda",
    "MIOPEN_USER_DB_PATH": "miopen",
    "MIOPEN_CUSTOM_CACHE_DIR": "miopen",
    "TRITON_CACHE_DIR": "triton",
    "NUMBA_CACHE_DIR": "numba",
    "MPLCONFIGDIR": "matplotlib",
    "KERAS_HOME": "keras",
}

_outcome: str | None = None  # of confine() in this process


def confine(scratch: str, *files: str) -> str:
    """From here on this process, its later threads and whatever it starts write, create, remove, rename and truncate
    nothing but what lies below `scratch`, these `files`, the null device and the nodes of accelerators; and neither
    open nor accept a TCP connection. Temporary files and caches go to `scratch`.

    "" where the wall stands; else why there is none, in words. To be called before there is a second thread, because
    those that exist are not confined: before TensorFlow is imported."""
    global _outcome
    _outcome = _confine(scratch, files)
    return _outcome


def protection() -> str:
    """How this machine confines the examination of a saved file, in words; after `confine` was called, whether that
    worked."""
    abi, reason = _abi()
    reason = _outcome if _outcome is not None else reason
    if reason:
        return f"not confined: {reason}"
    connections = "opens no TCP connection" if abi >= _CONNECTIONS_SINCE else "TCP is open (it takes Linux 6.7)"
    return f"confined by Landlock (ABI {abi}): writes only to a scratch directory, {connections}"


def _abi() -> tuple[int, str]:
    """The kernel's; 0 and the reason where there is none."""
    if sys.platform != "linux":
        return 0, f"Landlock is a part of Linux, and this is {sys.platform}"
    machine = os.uname().machine
    if machine not in _MACHINES:
        return 0, f"the system calls of Landlock are not known on {machine}"
    try:
        abi = _system_call(_CREATE_RULESET, None, 0, _ASK_FOR_ABI)
    except OSError as error:
        return 0, _reason(error)
    return abi, ""


def _reason(error: OSError) -> str:
    if error.errno == errno.ENOSYS:
        return f"Linux {os.uname().release} was built without Landlock"
    if error.errno == errno.EOPNOTSUPP:
        return "Landlock was switched off when Linux was started"
    if error.errno == errno.EPERM:
        return "Landlock is forbidden here, as some containers do"
    return f"Landlock answered {error.strerror}"


# --- the wall -------------------------------------------------------------------------------------------------------
def _confine(scratch: str, files: tuple[str, ...]) -> str:
    abi, reason = _abi()
    if reason:
        return reason
    rights = sum(bits for since, bits in _RIGHTS_SINCE if abi >= since)
    try:
        ruleset = _ruleset(abi, rights)
        try:
            _allow(ruleset, scratch, rights & ~(_MAKE_DEVICES | _IOCTL_DEVICE))
            for path in files:
                _allow(ruleset, path, _WRITE_FILE)
            _allow(ruleset, os.devnull, rights & (_WRITE_FILE | _TRUNCATE))
            for path, wanted in _paths_of_accelerators():
                _allow(ruleset, path, rights & wanted)
            _control(_NO_NEW_PRIVILEGES, 1)
            _system_call(_RESTRICT_SELF, ruleset, 0)
        finally:
            os.close(ruleset)
    except OSError as error:
        return _reason(error)
    _keep_caches_in(scratch)
    if _threads() > 1:
        return "a thread was running before it began, which Landlock does not reach"
    return ""


def _ruleset(abi: int, rights: int) -> int:
    """A descriptor. Whatever is handled and never allowed is forbidden."""
    handled = [rights]
    if abi >= _CONNECTIONS_SINCE:
        handled.append(_CONNECTIONS)
    if abi >= _SCOPES_SINCE:
        handled.append(_SCOPES)
    attributes = struct.pack("=" + "Q" * len(handled), *handled)
    return _system_call(_CREATE_RULESET, attributes, len(attributes), 0)


def _allow(ruleset: int, path: str, rights: int) -> None:
    """A right on a directory is one on all below it."""
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        _system_call(_ADD_RULE, ruleset, _BENEATH_PATH, struct.pack("=Qi", rights, place), 0)
    finally:
        os.close(place)


def _paths_of_accelerators() -> Iterator[tuple[str, int]]:
    """Paths, and the rights that a driver's library needs on them."""
    nodes = [path for pattern in _ACCELERATORS for path in glob.glob(pattern) if _is_device(path)]
    for path in nodes:
        yield path, _WRITE_FILE | _IOCTL_DEVICE
    if nodes and os.path.isdir(_OWN_THREADS):
        yield _OWN_THREADS, _WRITE_FILE


def _is_device(path: str) -> bool:
    """Whether it is a device, or a directory of them."""
    return os.path.isdir(path) or (os.path.exists(path) and stat.S_ISCHR(os.stat(path).st_mode))


def _threads() -> int:
    try:
        return len(os.listdir(_OWN_THREADS))
    except OSError:  # a system without procfs
        return threading.active_count()


def _system_call(number: int, *arguments: object) -> int:
    """The result of a system call. Raises OSError."""
    result = int(_libc().syscall(ctypes.c_long(number), *(_as_long(argument) for argument in arguments)))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _as_long(value: object) -> object:
    return ctypes.c_long(value) if isinstance(value, int) else value


def _control(option: int, value: int) -> None:
    """Call prctl. Raises OSError."""
    if _libc().prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


# --- the scratch directory ------------------------------------------------------------------------------------------
def _keep_caches_in(scratch: str) -> None:
    """Put caches and temporary files into `scratch`, also those of libraries that look up the folder while they are
    imported."""
    settings = os.path.join(os.environ.get("KERAS_HOME") or os.path.expanduser("~/.keras"), "keras.json")
    for variable, folder in _CACHES.items():
        os.environ[variable] = os.path.join(scratch, folder) if folder else scratch
        os.makedirs(os.environ[variable], exist_ok=True)
    tempfile.tempdir = scratch
    if os.access(settings, os.R_OK):  # the user's own choice of image format and backend, which Keras reads there
        shutil.copy(settings, os.environ["KERAS_HOME"])
