"""The Markdown report (a ticket for an issue tracker), read by a Markdown parser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import samples
from generated import diagnoses
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from mpdoctor.finding import Diagnosis
from mpdoctor.reporters import markdown
from mpdoctor.reporters.markdown.escaping import LONGEST_CELL, block, code, prose, table
from mpdoctor.reporters.printable import one_line, shortened, visible

EVERY = [*samples.SAMPLES.values(), samples.hostile]
# `html` on, as GitHub has it: what is not escaped would be seen
PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
OURS = {"<details>", "</details>"}
# Whatever Markdown, HTML, GitHub or a table could take for its own
HOSTILE = st.one_of(
    st.text(max_size=60),
    st.text(alphabet="`*_[]()<>#+-.!|~&$@:= \n\\abc1/", max_size=60),
    st.lists(
        st.sampled_from(
            [
                *("```", "``", "`", "<b>", "</details>", "|", "\\|", "1.", "#", "&lt;", "![x](y)", "@a", "a@b", "#1"),
                *(":a:", "http://x", "_", "*", "~~", " ", "\n"),
            ]
        )
    ).map("".join),
)


def flat(text: str) -> Iterator[Token]:
    for token in PARSER.parse(text):
        yield token
        yield from token.children or ()


def shown(text: str) -> str:
    """What a reader sees of one paragraph."""
    kinds = {"text", "code_inline", "softbreak"}
    return "".join(" " if token.type == "softbreak" else token.content for token in flat(text) if token.type in kinds)


def squeezed(text: str) -> str:
    return "".join(text.replace("`", "").split())


@given(HOSTILE)
def test_prose_shows_just_its_text(text: str) -> None:
    shows_just_its_text(text)


@pytest.mark.parametrize("text", ["  0.", "      - a", "` `   0)", "   # a", "  + a", "    code", " > a", "  = "])
def test_blanks_before_it_begin_nothing(text: str) -> None:
    shows_just_its_text(text)


def shows_just_its_text(text: str) -> None:
    told = prose(text)
    assert {token.type for token in flat(told)} <= {
        "paragraph_open", "paragraph_close", "inline", "text", "code_inline", "text_special",
    }  # fmt: skip
    assert squeezed(shown(told)) == squeezed(one_line(text))


@pytest.mark.parametrize(
    "text",
    ["@tf.function", "#123", "keras-team/keras#5", "GH-7", "http://x.org/?a=1", "www.x.org", ":tada:", "a@b.org"],
)
def test_nobody_is_called_and_nothing_is_linked(text: str) -> None:
    """On GitHub these mean something in prose, and nothing as code."""
    told = [token for token in flat(prose(f"see {text} there")) if token.type == "code_inline"]
    assert [token.content for token in told] == [text]


@given(HOSTILE)
def test_code_shows_just_its_text(text: str) -> None:
    expected = shortened(one_line(text), LONGEST_CELL)
    told = [token.content for token in flat(code(text)) if token.type == "code_inline"]
    assert told == ([expected] if expected.strip() else [])


@given(st.lists(HOSTILE, min_size=1, max_size=4))
def test_a_block_holds_its_lines(lines: list[str]) -> None:
    (fence,) = PARSER.parse(block(lines))
    assert fence.content == "\n".join(map(visible, lines)) + "\n"


@given(st.lists(st.tuples(HOSTILE, HOSTILE), min_size=1, max_size=4))
def test_a_table_keeps_its_cells(rows: list[tuple[str, str]]) -> None:
    tokens = PARSER.parse(table(("a", "b"), ((prose(plain), code(spelled)) for plain, spelled in rows)))
    assert [token.type for token in tokens].count("tr_open") == len(rows) + 1
    cells = [token for token in tokens if token.type == "inline"][2:]
    assert len(cells) == 2 * len(rows)


@pytest.mark.parametrize("sample", EVERY)
def test_only_our_own_html_is_html(sample: Any) -> None:
    assert_nothing_foreign(markdown.render(sample()))


@given(diagnoses())
@settings(
    max_examples=25,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink a diagnosis takes minutes
)
def test_no_diagnosis_brings_foreign_html(diagnosis: Diagnosis) -> None:
    assert_nothing_foreign(markdown.render(diagnosis))


def assert_nothing_foreign(told: str) -> None:
    tokens = list(flat(told))
    assert not [token for token in tokens if token.type in ("html_inline", "link_open", "image")]
    for token in tokens:
        if token.type == "html_block":
            for line in token.content.split("\n"):
                assert not line or line in OURS or re.fullmatch(r"<summary>[^<>]*</summary>", line), line
    opened = sum(token.content.count("<details>") for token in tokens if token.type == "html_block")
    closed = sum(token.content.count("</details>") for token in tokens if token.type == "html_block")
    assert opened == closed


@pytest.mark.parametrize("sample", EVERY)
def test_it_fits_into_an_issue(sample: Any) -> None:
    assert len(markdown.render(sample())) < 65_536


def test_it_tells_all_that_the_issue_needs() -> None:
    told = markdown.render(samples.collapsing())
    order = [
        "## ✗ 2 errors, 1 warning in train.py: the loss scale collapses to 5.82e-11",
        "#### error MP904 activation-overflows",
        "9 │         return tf.square(x)\n  │                ^^^^^^^^^^^^",
        '**Fix:** Compute this layer in float32: `Square(dtype="float32")`, or scale its input down.',
        "| `dense_1` | `Dense` | `mixed_float16` | `float16 → float32` | `float16` | MP201 |",
        "loss scale  32768 → 5.82e-11",
        "| TensorFlow version | `2.21.0` |",
        "| Python version | `3.11.9` |",
        "```sh\nmpdoctor check train.py\n```",
        "<summary>The numbers that led to it</summary>",
    ]
    places = [told.index(text) for text in order]
    assert places == sorted(places)


def test_the_environment_stands_in_the_order_of_tensorflows_template() -> None:
    environment = {
        "Keras": "3.15.1",
        "GPU 0": "NVIDIA H200",
        "cuDNN": "9",
        "CUDA": "12.5",
        "Python": "3.11.9",
        "System": "Debian 12",
        "TensorFlow": "2.21.0",
        "CUDA_VISIBLE_DEVICES": "0",
    }
    told = markdown.render(samples.diagnosis(environment=environment))
    labels = re.findall(r"^\| ([^|]+) \| `", told, re.MULTILINE)
    assert labels == [
        "mpdoctor",
        "TensorFlow version",
        "Custom code",
        "OS platform and distribution",
        "Python version",
        "CUDA/cuDNN version",
        "GPU model",
        "Keras in use",
        "CUDA\\_VISIBLE\\_DEVICES",
        "GPU 0",
    ]
    assert "`12.5 / 9`" in told


def test_the_keras_that_runs_stands_apart_from_what_is_installed() -> None:
    environment = {"tf.keras": "tf_keras 2.21.0: asked for", "Keras": "3.15.1", "GPU": "none that TensorFlow can use"}
    told = markdown.render(samples.diagnosis(environment=environment))
    rows = ("| Keras in use | `tf_keras 2.21.0: asked for` |", "| GPU model | `none that TensorFlow can use` |")
    assert all(row in told for row in (*rows, "| Keras | `3.15.1` |"))
