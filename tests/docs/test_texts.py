"""Texts that `sawbones explain` shows: the same as in docs/, and every name in them exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import sawbones.testing
from sawbones.lookup import look_up, search
from sawbones.lookup.search import texts
from sawbones.schema import fault
from sawbones.trials.menu import parse

DOCS = Path(__file__).parents[2] / "docs"


def test_the_copies_in_docs_are_the_same() -> None:
    done = subprocess.run(
        [sys.executable, str(DOCS / "generate_texts.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", texts())
def test_a_text_is_found_by_its_name_and_its_commands_exist(name: str) -> None:
    text = look_up(name.replace("-", " "))
    assert text == texts()[name] and text.startswith("# ")
    for word in re.findall(r"sawbones explain ([a-z.-]+)", text):
        assert look_up(word)
    for word in re.findall(r"sawbones try (\S+) train.py", text):
        assert parse(word)


def test_every_antipattern_has_a_test_and_a_fault() -> None:
    rows = re.findall(r"\| `(assert_\w+)` \| `([\w.-]+)` \|", texts()["antipatterns"])
    assert len(rows) >= 20
    for assertion, known in rows:
        assert assertion in sawbones.testing.__all__ and fault(known)


def test_a_search_finds_texts_too() -> None:
    assert "derivations" in {hit.name for hit in search("derivation of layer norm backwards")}
