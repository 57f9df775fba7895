"""What is nobody's business stands in no report that is made to be shared."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import samples
from hypothesis import given, settings
from hypothesis import strategies as st

from mpdoctor.finding import Excerpt
from mpdoctor.reporters import html, markdown
from mpdoctor.reporters.privacy import Surroundings, every_string, surroundings_from_environment, without_private

ANN = Surroundings("/data/people/ann7", ("ann7",), (("WANDB_API_KEY", "0123456789abcdef"), ("DB_PASSWORD", "hunter2")))


def cleaned(text: str, surroundings: Surroundings = ANN) -> str:
    return without_private(samples.diagnosis(command=text), surroundings).command


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/maria/net/train.py", "~/net/train.py"),
        ("/Users/maria/net/train.py", "~/net/train.py"),
        ("/var/home/maria/x", "~/x"),
        ("/mnt/c/Users/maria/x", "~/x"),
        (r"C:\Users\Maria Lee\net\train.py", r"~\net\train.py"),
        ("file '/home/maria'", "file '~'"),
        ("~maria/x", "~/x"),
        ("/root/.keras/x.h5", "~/.keras/x.h5"),
        ("/data/people/ann7/net", "~/net"),
        ("/data/people/ann77/net", "/data/people/ann77/net"),
        ("/home/maria/x and maria's /scratch/maria/y", "~/x and <user>'s /scratch/<user>/y"),
        ("/scratch/ann7/y ann7@node3", "/scratch/<user>/y <user>@node3"),
        ("runs_ann7_1", "runs_<user>_1"),
        ("wandb.login(key='0123456789abcdef')", "wandb.login(key='$WANDB_API_KEY')"),
        ("mysql -p hunter2", "mysql -p $DB_PASSWORD"),
        ("hf_abcdefghijklmnopqrstuvwxyz", "***"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "***"),
        ("AKIAABCDEFGHIJKLMNOP", "***"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefgh", "***"),
        ("https://maria:geheim@example.org/x.git", "https://***@example.org/x.git"),
        ("write to maria.lee@example.org", "write to ***"),
        ("password = 'swordfish'", "password = '***'"),
        ('{"api_key": "swordfish"}', '{"api_key": "***"}'),
        ("os.environ['HF_TOKEN'] = 'abc123def456ghi'", "os.environ['HF_TOKEN'] = '***'"),
        ("train.py -- --api-key swordfish --steps 3", "train.py -- --api-key *** --steps 3"),
        ("COMET_API_KEY=swordfish python x.py", "COMET_API_KEY=*** python x.py"),
        ("Authorization: Bearer swordfish", "Authorization: Bearer ***"),
    ],
)
def test_private_things_are_taken_out(text: str, shown: str) -> None:
    assert cleaned(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "src/home/page.py",
        "https://example.org/home/page",
        "tokenizer = Tokenizer(oov_token='<OOV>', num_tokens=512)",
        "mask_token = '[MASK]'",
        "start_token='startseq'",
        "def login(password: str): ...",
        "keras.layers.MultiHeadAttention(key_dim=64)(query, key)",
        "optimizer='adam'",
        "x = x @ w.T",
        "@tf.function",
        "root/dense/kernel",
        "the loss scale fell from 32768 to 5.82e-11",
        "TOKENIZERS_PARALLELISM=false",
        "/usr/lib/python3/dist-packages/keras/src/layers/layer.py",
        "opt = LossScaleOptimizer(Adam(1e-3))",
    ],
)
def test_what_is_not_private_stays(text: str) -> None:
    assert cleaned(text) == text
    assert cleaned(f"/home/adam/x {text}") == f"~/x {text}"


def test_the_environment_says_what_is_secret() -> None:
    told = surroundings_from_environment(
        {
            "HOME": "/h/ann",
            "USER": "ann",
            "LOGNAME": "ann",
            "HF_TOKEN": "abcdefgh",
            "MY_DB_PASSWORD": "abc",
            "TOKENIZERS_PARALLELISM": "false",
            "SSH_KEY": "/usr",
            "PATH": "/usr/bin:/bin",
        }
    )
    assert told == Surroundings("/h/ann", ("ann",), (("HF_TOKEN", "abcdefgh"),))


def test_a_line_that_changed_is_marked_as_a_whole() -> None:
    finding = dataclasses.replace(samples.SHADOWED, excerpt=Excerpt(12, ("load('/home/maria/x'); opt.epsilon = 1",)))
    (shown,) = without_private(samples.diagnosis(finding), Surroundings()).findings
    assert shown.excerpt == Excerpt(12, ("load('~/x'); opt.epsilon = 1",))
    assert shown.location is not None and (shown.location.line, shown.location.column) == (12, 0)
    assert without_private(samples.collapsing(), ANN) == samples.collapsing()


# --- in the reports -------------------------------------------------------------------------------------------------
SHARED = [markdown.render, html.render]
PRIVATE = {
    "a home directory": "/home/mallory5/net",
    "a user's name": "mallory5",
    "a token": "hf_abcdefghijklmnopqrstuvwxyz",
    "a password": "api_key='swordfish7'",
    "the value of a variable": "0123456789abcdef",
    "the home": "/data/people/ann7",
}


@pytest.mark.parametrize("render", SHARED)
@pytest.mark.parametrize("sample", [*samples.SAMPLES.values(), samples.hostile])
@given(before=st.text(max_size=3), between=st.sampled_from([" ", "\n", "`", "|", "'", "<"]))
@settings(max_examples=5, deadline=None)
def test_no_report_holds_anything_private(render: Any, sample: Any, before: str, between: str) -> None:
    """Wherever it stands: it is put into every string of the diagnosis that may hold anything."""
    planted = before + between + between.join(PRIVATE.values())

    def plant(text: str) -> str:
        return text if text in ("keras", "fit", "real", "dense", "DENSE") or len(text) > 1000 else text + planted

    told = render(every_string(sample(), plant), surroundings=ANN)
    for secret in ("mallory5", "hf_abc", "swordfish7", "0123456789abcdef", "ann7"):
        assert secret not in told
