"""Every check's docstring is a page: the headings in order, code that compiles, names that
exist.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

from sawbones import faults as rooms
from sawbones import trials
from sawbones.faults import Check, all_checks
from sawbones.pages import HEADINGS, explain
from sawbones.schema import faults
from sawbones.schema.signals import SIGNALS

_EVERY = pytest.mark.parametrize("check", all_checks(), ids=lambda check: check.fault)


def _sections(page: str) -> dict[str, str]:
    parts = re.split(r"^## (.+)$", inspect.cleandoc(page), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@_EVERY
def test_page_has_one_title_line_and_the_headings_in_order(check: Check) -> None:
    page = inspect.cleandoc(check.page)
    title = page.split("\n## ")[0].strip()
    assert title and "\n" not in title and not title.endswith(".")
    assert tuple(_sections(page)) == HEADINGS
    assert [name for name, text in _sections(page).items() if not text.strip()] == []


@_EVERY
def test_example_and_its_fix_compile_and_differ(check: Check) -> None:
    sections = _sections(check.page)
    broken, fixed = (
        textwrap.dedent(sections[name].strip("\n")) for name in ("Example", "Use instead")
    )
    assert ast.dump(ast.parse(broken)) != ast.dump(ast.parse(fixed))


@_EVERY
def test_everything_a_check_names_exists(check: Check) -> None:
    assert check.fault in faults()
    assert check.needs and set(check.needs) <= set(SIGNALS)
    assert set(check.explains) <= set(faults()) - {check.fault}
    if check.experiment is not None:
        assert find_spec(trials.module_of(check.experiment)), f"no trial {check.experiment}"


@_EVERY
def test_explain_prints_the_page(check: Check) -> None:
    assert all(f"## {name}" in explain(check.fault) for name in HEADINGS)


def test_every_room_has_a_check_found_by_its_place() -> None:
    (root,) = rooms.__path__
    found = {p.parent for p in Path(root).glob("*/*/__init__.py")}
    named = {f"{room.parent.name}.{room.name.replace('_', '-')}" for room in found}
    assert named == {check.fault for check in all_checks()}
