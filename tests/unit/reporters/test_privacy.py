"""Private data (home directories, user names, tokens) stand in no report that is made to be shared."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import pytest
import samples
from fuzzing import at_most
from hypothesis import given, settings
from hypothesis import strategies as st

from mpdoctor.cli import main
from mpdoctor.cli.output import OWN, SHARED, SUFFIXES, OutputFormat
from mpdoctor.finding import Excerpt, Skipped
from mpdoctor.reporters.json.saved_diagnosis import diagnosis_from_json
from mpdoctor.reporters.privacy import Surroundings, surroundings_from_environment, without_private
from mpdoctor.reporters.rendering import report_from_diagnosis
from mpdoctor.reporters.string_walk import with_every_string

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


def test_the_name_of_a_variable_is_read_as_that_of_any_other_secret() -> None:
    random = "wJalrXUtnFEMI7K7MDENG"
    names = ("ACCESSTOKEN", "clientSecret", "PGPASSWORD", "MYSQL_PWD", "GH_PAT", "JWT", "REDIS_AUTH", "TOKEN_OF_CI")
    variables = dict.fromkeys(names, random) | {
        "DATABASE_URL": "postgresql+psycopg2://ann:geheim7@db/x",
        "KEY_DIM": "64x64x64",
        "MAX_TOKEN_COUNT": "100000",
        "JWT_ISSUER": "somebody",
        "PASSENGERS": "all of them",
        "HOME_URL": "https://example.org:8080/a@b",
    }
    told = dict(surroundings_from_environment(variables).secrets)
    assert told == dict.fromkeys(names, random) | {"DATABASE_URL": "geheim7"}


def test_a_line_that_changed_is_marked_as_a_whole() -> None:
    finding = dataclasses.replace(samples.SHADOWED, excerpt=Excerpt(12, ("load('/home/maria/x'); opt.epsilon = 1",)))
    (shown,) = without_private(samples.diagnosis(finding), Surroundings()).findings
    assert shown.excerpt == Excerpt(12, ("load('~/x'); opt.epsilon = 1",))
    assert shown.location is not None and (shown.location.line, shown.location.column) == (12, 0)
    other = dataclasses.replace(samples.SHADOWED, excerpt=Excerpt(11, ("load('/home/maria/x')", "opt.epsilon = 1e-4")))
    (shown,) = without_private(samples.diagnosis(other), Surroundings()).findings
    assert (shown.location, shown.excerpt) == (other.location, Excerpt(11, ("load('~/x')", "opt.epsilon = 1e-4")))
    assert without_private(samples.collapsing(), ANN) == dataclasses.replace(samples.collapsing(), redacted=True)


def test_a_token_in_the_environment_may_be_longer_than_any_path() -> None:
    token = "a1" * 3000
    assert surroundings_from_environment({"A_TOKEN": token}).secrets == (("A_TOKEN", token),)


@pytest.mark.parametrize("told", ["password='{}'", "https://ann:{}@h/x", "Authorization: Bearer {}"])
def test_a_secret_that_is_named_in_one_place_is_hidden_in_every_other(told: str) -> None:
    secret = "Q7f3kL9xZp2Vb8Nd4Rt6Yw1J"
    skipped = (Skipped("a", f"cannot log in with {secret}"), Skipped("b", told.format(secret)))
    shown = without_private(samples.diagnosis(skipped=skipped), Surroundings()).skipped
    assert [secret in text.reason for text in shown] == [False, False]
    word = (Skipped("a", "the training stops"), Skipped("b", told.format("training")))
    assert without_private(samples.diagnosis(skipped=word), Surroundings()).skipped[0] == word[0]


def test_a_diagnosis_says_that_it_is_redacted() -> None:
    redacted = without_private(samples.one_error(), ANN)
    assert (redacted.redacted, samples.one_error().redacted) == (True, False)
    assert diagnosis_from_json(report_from_diagnosis(redacted, "json")).redacted
    assert "are left out." in report_from_diagnosis(redacted, "html")
    assert "are left out." not in report_from_diagnosis(samples.one_error(), "html")


def test_made_up_users_cost_no_time() -> None:
    text = " ".join(f"/home/made{n}" for n in range(30_000))
    diagnosis = samples.diagnosis(command=text, skipped=tuple(Skipped("a", f"reason {n}") for n in range(2000)))
    with at_most(20):
        assert "made" not in without_private(diagnosis, Surroundings()).command


# --- in the reports -------------------------------------------------------------------------------------------------
PRIVATE = {
    "a home directory": "/home/mallory5/net",
    "a user's name": "mallory5",
    "a token": "hf_abcdefghijklmnopqrstuvwxyz",
    "a password": "api_key='swordfish7'",
    "the value of a variable": "0123456789abcdef",
    "the home": "/data/people/ann7",
}
SECRETS = ("mallory5", "hf_abc", "swordfish7", "0123456789abcdef", "ann7")


@pytest.mark.parametrize("form", OutputFormat)
@pytest.mark.parametrize("sample", [*samples.SAMPLES.values(), samples.hostile])
@given(before=st.text(max_size=3), between=st.sampled_from([" ", "\n", "`", "|", "'", "<"]))
@settings(max_examples=3)
def test_no_report_holds_anything_private(form: OutputFormat, sample: Any, before: str, between: str) -> None:
    """Wherever it stands: it is put into every string of the diagnosis that may hold anything."""
    planted = before + between + between.join(PRIVATE.values())

    def plant(text: str, _: str) -> str:
        return text if text in ("keras", "fit", "real", "dense", "DENSE") or len(text) > 1000 else text + planted

    told = report_from_diagnosis(without_private(with_every_string(sample(), plant), ANN), form.value)
    assert not [secret for secret in SECRETS if secret in told]


def test_every_format_is_shared_or_the_users_own() -> None:
    """A new one is put into either table."""
    assert sorted([*SHARED, *OWN]) == sorted(OutputFormat)


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef")
    command = "mpdoctor check train.py -- --api-token=swordfish7 0123456789abcdef"
    finding = dataclasses.replace(samples.SHADOWED, message="password='swordfish7'")
    saved = tmp_path / "saved.json"
    saved.write_text(report_from_diagnosis(samples.diagnosis(finding, command=command), "json"))
    return saved


def shown(saved: Path, form: OutputFormat, *options: str) -> str:
    """In a file, which is what is shared."""
    suffix = next(suffix for suffix, of in SUFFIXES.items() if of is form) if form in SUFFIXES.values() else ""
    if not suffix:  # concise and github go to standard output alone
        told = io.StringIO()
        with contextlib.redirect_stdout(told), pytest.raises(SystemExit):
            main(["show", str(saved), "--output-format", form.value, *options])
        return told.getvalue()
    with contextlib.redirect_stdout(io.StringIO()), pytest.raises(SystemExit):
        main(["show", str(saved), "--output-format", "concise", "--report", f"a{suffix}", *options])
    return Path(f"a{suffix}").read_text()


@pytest.mark.parametrize("form", OutputFormat)
def test_what_is_shared_is_redacted_and_what_is_ones_own_on_demand(saved: Path, form: OutputFormat) -> None:
    assert ("swordfish7" in shown(saved, form)) is (form in OWN)
    assert "swordfish7" in shown(saved, form, "--no-redact")
    assert "swordfish7" not in shown(saved, form, "--redact")
    assert "0123456789abcdef" not in shown(saved, form, "--redact")
    if form is OutputFormat.json:
        told = [json.loads(shown(saved, form, *options)) for options in ((), ("--redact",))]
        assert [report["redacted"] for report in told] == [False, True]


def test_check_redacts_as_show_does(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = "import tensorflow as tf\nopt = tf.mixed_precision.LossScaleOptimizer(password='swordfish7')\n"
    Path("train.py").write_text(source)
    for options, held in (((), True), (("--redact",), False), (("--output-format", "sarif"), False)):
        with pytest.raises(SystemExit):
            main(["check", "--static", "train.py", "--no-cache", *options])
        assert ("swordfish7" in capsys.readouterr().out) is held
