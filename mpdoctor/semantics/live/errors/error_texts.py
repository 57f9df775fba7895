"""What an exception says, without the wrapping that Keras and TensorFlow put around it."""

from __future__ import annotations

import re

from mpdoctor.facts.failure import FailureFacts

_LONGEST = 300
_SAVED_NAME = re.compile(r".{0,200}?\.(?:keras|h5|hdf5)(?= )")
_NEXT_SENTENCE = re.compile(r"\. (?=[A-Z`-])")


def headline_from_failure(failure: FailureFacts) -> str:
    """The error in one line: "ValueError: Shapes (None, 1) and (None, 10) are incompatible"."""
    text = essence_of_message(failure.message)
    text = text[len(failure.exception) + 1 :].strip() if text.startswith(f"{failure.exception}:") else text
    return f"{failure.exception}: {text}" if text else failure.exception


def essence_of_message(message: str) -> str:
    """The line that says something, without colours, "Exception encountered when calling …" and node dumps."""
    checked = found_by_check_numerics(message)
    if checked:
        return checked
    plain = re.sub(r"\x1b\[[0-9;]*m", "", message)
    told = re.split(r"^\s*\w*(?:Error|Exception): ", plain, flags=re.MULTILINE)[-1]  # of an error inside another
    told = re.split(r"^Node: '.*'$", told, flags=re.MULTILINE)[-1]  # after the lines that made it, as told until 2.12
    lines = [line for line in told.splitlines() if line.strip() and not _is_wrapping(line.strip())]
    text = re.sub(r"\. Got:$", ".", _first_sentence(lines, is_block=told.startswith("\n")))  # a list follows
    text = re.sub(r" for '\{\{node [^']*'", _dtypes_of_node, text)
    text = re.sub(r"\s*\{\{(function_)?node [^}]*\}\}\s*", " ", text).strip()
    text = re.sub(r"\s*\[Op:\w+\]( name:.*)?$", "", text)
    return text if len(text) <= _LONGEST else text[:_LONGEST].rsplit(" ", 1)[0] + " …"


def found_by_check_numerics(message: str) -> str:
    """What tf.debugging.enable_check_numerics() stopped at: "check_numerics found NaN in the output of `MatMul`"; ""
    for other errors."""
    operation = re.search(r"Detected Infinity or NaN in output \d+ of [\w-]+(?: op)? op \"(\w+)\"", message)
    values = re.search(r"Tensor had ((?:NaN|[+-]?Inf)(?:(?:,| and) (?:NaN|[+-]?Inf))*) values", message)
    if operation is None:
        return ""
    return f"check_numerics found {values[1] if values else 'inf or NaN'} in the output of `{operation[1]}`"


def problem_and_remedy(message: str) -> tuple[str, str]:
    """The first sentence of what the examiner says of a target that it cannot examine, and the others: what to do. The
    name of a file may hold a full stop and a space, too."""
    start = _SAVED_NAME.match(message)
    end = _NEXT_SENTENCE.search(message, start.end() if start else 0)
    return (message[: end.start() + 1], message[end.end() :]) if end else (f"{message.rstrip('.')}.", "")


def _first_sentence(lines: list[str], is_block: bool) -> str:
    """The first line, and those that it goes on in: Keras breaks some of its sentences, in a block that is indented or
    begins with an empty line (`is_block`)."""
    text = lines[0].strip() if lines else ""
    if not lines or not (is_block or lines[0][:1].isspace()):
        return text
    for line in lines[1:]:
        goes_on = (is_block or line[:1].isspace()) and line.strip()[0].islower()
        if text.endswith((".", ":", "!", "?")) or not goes_on:
            break
        text = f"{text} {line.strip()}"
    return text


def _dtypes_of_node(node: re.Match[str]) -> str:
    """ " (half)" of "for '{{node range}} = Range[Tidx=DT_HALF](…)'"."""
    dtypes = list(dict.fromkeys(dtype.lower() for dtype in re.findall(r"=DT_(HALF|BFLOAT16)\b", node[0])))
    return f" ({' and '.join(dtypes)})" if dtypes else ""


def _is_wrapping(line: str) -> bool:
    return line.startswith(
        ("Exception encountered when calling", "Could not automatically infer the output shape", "in user code:",
         "Graph execution error", "File \"", "Detected at node", "Arguments received by", "Traceback (most recent", "•",
         "During handling",
         "Call arguments received", "<stack traces unavailable>")
    ) or set(line) <= set("~^- *")  # fmt: skip


def place_of_failure(failure: FailureFacts) -> str:
    """The layer that raised, in words; "" where none was being called."""
    if failure.layer is None:
        return ""
    return f"layer `{failure.layer}` ({failure.layer_class})"


def evidence_of(failure: FailureFacts) -> dict[str, object]:
    """The error as it was raised, and the dtypes of what its line names."""
    values = {operand.name: operand.dtype for operand in failure.operands}
    return {"exception": failure.exception, "error": failure.message, **({"dtypes": values} if values else {})}
