"""What is read without `packaging` says what `packaging` says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import InvalidRequirement, Requirement

from mpdoctor.project.declared_versions.version_ranges import plain_requirement

pytestmark = pytest.mark.fast

VERSIONS = st.lists(st.integers(0, 4) | st.sampled_from([15, 16]), min_size=1, max_size=4).map(
    lambda parts: ".".join(map(str, parts))
)
ASKED = VERSIONS | st.sampled_from(["2.16.0rc1", "2.15.0+cpu", "2.15.post1", "2.16.dev0"])
CLAUSES = st.lists(
    st.tuples(st.sampled_from([">=", "<=", "==", "!=", "<", ">", "~=", "==="]), VERSIONS, st.sampled_from(["", ".*"])),
    max_size=3,
)
SPACES = st.sampled_from(["", " "])


@given(st.sampled_from(["tensorflow", "keras", "tf_keras", "tensorflow-cpu", "k"]), CLAUSES, SPACES, ASKED)
def test_it_says_what_packaging_says(name: str, clauses: list[tuple[str, str, str]], space: str, asked: str) -> None:
    text = name + space + f",{space}".join(f"{operator}{space}{version}{end}" for operator, version, end in clauses)
    plain = plain_requirement(text)
    if plain is None:
        return
    wanted = Requirement(text)
    assert plain[0] == wanted.name and len(plain[1]) == len(clauses)
    assert plain[1].contains(asked, prereleases=True) == wanted.specifier.contains(asked, prereleases=True)


@given(st.text("tkf-_. []<>=!~,;0123456789*ab()@", max_size=14))
def test_what_packaging_refuses_is_left_to_it(text: str) -> None:
    try:
        wanted = Requirement(text)
    except InvalidRequirement:
        assert plain_requirement(text) is None
        return
    plain = plain_requirement(text)
    if plain is not None:
        assert plain[0] == wanted.name and not wanted.extras and wanted.marker is None and wanted.url is None
        assert {(clause.operator, clause.version) for clause in plain[1]} == {
            (clause.operator, clause.version) for clause in wanted.specifier
        }


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [
        ("tensorflow", True),
        ("tensorflow>=2.16", True),
        (" tensorflow >= 2.12, <2.16 ", True),
        ("tf_keras==2.16.0", True),
        ("tensorflow~=2.15", False),
        ("tensorflow==2.*", False),
        ("tensorflow[and-cuda]>=2.16", False),
        ("tensorflow>=2.16; python_version > '3.9'", False),
        ("tensorflow>=2.16rc1", False),
        ("tensorflow @ https://example.org/x.whl", False),
        ("tensorflow>=", False),
        ("", False),
    ],
)
def test_what_is_plain(text: str, is_plain: bool) -> None:
    assert (plain_requirement(text) is not None) is is_plain
