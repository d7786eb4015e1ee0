"""Edits keep everything that they do not name, and refuse what would not work."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from sawbones.fixing.editing import (
    Edit,
    EditRefused,
    add_argument,
    after,
    apply,
    before,
    first_in,
    indent,
    loses_a_comment,
    remove,
    remove_keyword,
    rename_attribute,
    replace,
    set_keyword,
    unified_diff,
)
from sawbones.fixing.moves import move
from sawbones.fixing.names import means_the_same, spelled, value_of
from sawbones.fixing.source import NotReadable, Source

LOOP = "for x, y in data:\n    loss = f(x, y)  # sum\n    loss.backward()\n    opt.step()\n"


def source(text: str | bytes) -> Source:
    return Source.of(text if isinstance(text, bytes) else text.encode(), "train.py")


def statement(of: Source, line: int) -> ast.stmt:
    found = of.statement_at(line)
    assert found is not None
    return found


def call(of: Source, name: str) -> ast.Call:
    calls = [n for n in ast.walk(of.tree) if isinstance(n, ast.Call)]
    return next(c for c in calls if ast.unparse(c.func).endswith(name))


def test_a_line_goes_in_front_of_and_behind_a_statement():
    s = source(LOOP)
    assert (
        "    opt.zero_grad()\n    loss.backward()\n"
        in apply(s, [before(s, statement(s, 3), "opt.zero_grad()")]).text
    )
    assert apply(s, [after(s, statement(s, 4), "log()")]).text == LOOP + "    log()\n"


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("step", ["    ", "\t"])
def test_line_ends_tabs_and_bytes_of_other_encodings_stay(ending, step):
    text = "# -*- coding: latin-1 -*-\nif ok:\n    é = 'ü'  # ñ\n    go()\n"
    raw = text.replace("    ", step).replace("\n", ending).encode("latin-1")
    s = source(raw)
    new = apply(s, [before(s, statement(s, 4), "if a:\n    b()")])
    added = f"{step}if a:{ending}{step}{step}b(){ending}".encode()
    at = raw.index(b"go()") - len(step)
    assert new.raw == raw[:at] + added + raw[at:]


def test_a_byte_order_mark_and_a_missing_last_line_end_stay():
    s = source("\ufeffa()\nb()".encode())
    assert apply(s, [after(s, statement(s, 2), "c()")]).raw == "\ufeffa()\nb()\nc()".encode()


def test_several_statements_on_a_line():
    s = source("a(); b(); c()\nif x: y()\n")
    b = statement(s, 1)
    b = s.tree.body[1]
    assert apply(s, [before(s, b, "n()")]).text.startswith("a(); n(); b(); c()")
    assert apply(s, [after(s, b, "n()")]).text.startswith("a(); b(); n(); c()")
    inner = s.tree.body[3].body[0]
    assert apply(s, [before(s, inner, "n()")]).text.endswith("if x: n(); y()\n")
    with pytest.raises(EditRefused):
        before(s, inner, "if a:\n    b()")


def test_a_removed_statement_leaves_a_block_that_compiles():
    s = source("if x:\n    a()\nb()\n")
    assert apply(s, [remove(s, s.tree.body[0].body[0])]).text == "if x:\n    pass\nb()\n"
    assert apply(s, [remove(s, s.tree.body[1])]).text == "if x:\n    a()\n"


def test_a_deleted_comment_is_noticed():
    s = source(LOOP)
    assert loses_a_comment(s, apply(s, [remove(s, statement(s, 2))]))
    assert not loses_a_comment(s, apply(s, [remove(s, statement(s, 3))]))


def test_a_moved_statement_takes_its_comment_along():
    s = source("def f():\n    step()\n    clip(\n        p,  # all\n    )  # late\n")
    step, clip = s.tree.body[0].body
    new = apply(s, move(s, clip, step, behind=False))
    assert new.text == "def f():\n    clip(\n        p,  # all\n    )  # late\n    step()\n"


def test_overlapping_edits_are_refused_and_nothing_is_half_done():
    s = source(LOOP)
    with pytest.raises(EditRefused, match="overlap"):
        apply(s, [Edit("train.py", 0, 9, "a"), Edit("train.py", 4, 12, "b")])
    with pytest.raises(EditRefused, match="compile"):
        apply(s, [replace(s, statement(s, 3), "return 1")])
    with pytest.raises(EditRefused, match="stays"):
        apply(s, [])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("f()", "f(k=1)"),
        ("f(a)", "f(a, k=1)"),
        ("f((a))", "f((a), k=1)"),
        ("f(a,)", "f(a, k=1)"),
        ("f(\n    a,  # one)\n    b,  # two\n)", "f(\n    a,  # one)\n    b,\n    k=1,  # two\n)"),
        ("f(a, k=2)", "f(a, k=1)"),
        ("f(a, *b)", "f(a, *b, k=1)"),
    ],
)
def test_a_keyword_is_set_or_added(old, new):
    s = source(old + "\n")
    assert apply(s, [set_keyword(s, call(s, "f"), "k", "1")]).text == new + "\n"


def test_a_keyword_that_may_come_from_elsewhere_is_left_alone():
    s = source("f(a, **settings)\n")
    with pytest.raises(EditRefused):
        set_keyword(s, call(s, "f"), "k", "1")


@pytest.mark.parametrize(
    ("old", "new"), [("f(a, k=1)", "f(a)"), ("f(k=1, b=2)", "f(b=2)"), ("f(k=1)", "f()")]
)
def test_a_keyword_goes_with_its_comma(old, new):
    s = source(old + "\n")
    assert apply(s, [remove_keyword(s, call(s, "f"), "k")]).text == new + "\n"


def test_names_of_attributes_and_columns_behind_wide_letters():
    s = source('x = "äöü" + self.opts["é"].sum()\n')
    new = apply(s, [rename_attribute(s, call(s, "sum").func, "mean")])
    assert new.text == 'x = "äöü" + self.opts["é"].mean()\n'


def test_a_block_around_statements_leaves_strings_as_they_are():
    s = source('def f():\n    a = """x\ny"""\n    b()\n')
    new = apply(s, indent(s, s.tree.body[0].body, "with c:"))
    assert new.text == 'def f():\n    with c:\n        a = """x\ny"""\n        b()\n'


def test_the_first_statement_stands_behind_a_docstring():
    s = source('def f():\n    """Says."""\n    go()\n')
    new = apply(s, [first_in(s, s.tree.body[0].body, "super().__init__()")])
    assert new.text == 'def f():\n    """Says."""\n    super().__init__()\n    go()\n'


def test_the_diff_is_one_that_git_applies(tmp_path):
    s = source("a()\r\nb()\r\nc()")
    new = apply(s, [before(s, statement(s, 2), "n()"), after(s, statement(s, 3), "e()")])
    (tmp_path / "train.py").write_bytes(s.raw)
    subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        cwd=tmp_path,
        input=unified_diff(s, new).encode(),
        check=True,
    )
    assert (tmp_path / "train.py").read_bytes() == new.raw


def test_what_is_no_python_is_not_read():
    with pytest.raises(NotReadable):
        source("def f(:\n")
    with pytest.raises(NotReadable):
        source(b"x = '\xff'\n")


def test_an_expression_is_used_only_where_it_means_the_same():
    s = source(
        "class T:\n    def a(self):\n        self.o.step()\n    def b(self):\n        go()\n"
        "o = 1\no.step()\ndef f():\n    go()\ndef g(o):\n    go()\n"
    )
    of_self, plain = [n.func.value for n in ast.walk(s.tree) if _steps(n)][::-1]
    assert means_the_same(s, of_self, statement(s, 5))
    assert means_the_same(s, plain, statement(s, 9))
    assert not means_the_same(s, plain, statement(s, 11))
    assert not means_the_same(s, of_self, statement(s, 9))


def _steps(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".step")


def test_values_are_followed_through_names_tuples_and_attributes_of_self():
    s = source(
        "A, B = 1, 2\nclass T:\n    def __init__(self):\n        self.r = B\n        f(self.r)\n"
    )
    assert ast.unparse(value_of(s, call(s, "f").args[0])) == "2"
    s = source("a = 1\na = 2\nf(a)\n")
    assert ast.unparse(value_of(s, call(s, "f").args[0])) == "a"  # bound twice


@pytest.mark.parametrize(
    ("imports", "name"),
    [
        ("import torch", "torch.nn.functional.relu"),
        ("import torch as th", "th.nn.functional.relu"),
        ("from torch import nn", "nn.functional.relu"),
        ("import torch.nn.functional as F", "F.relu"),
        ("from torch.nn.functional import relu as r", "r"),
    ],
)
def test_names_of_torch_are_written_as_the_file_imports_them(imports, name):
    assert spelled(source(imports + "\n"), "torch.nn.functional.relu") == (name, ())


def test_a_missing_import_is_added_behind_future_and_docstring():
    s = source('"""Says."""\nfrom __future__ import annotations\n\ngo()\n')
    name, edits = spelled(s, "torch.bool")
    assert name == "torch.bool"
    assert apply(s, edits).text.split("\n")[2] == "import torch"


def test_an_argument_behind_a_call_without_any():
    s = source("rng = default_rng()\n")
    assert apply(s, [add_argument(s, call(s, "default_rng"), "0")]).text == "rng = default_rng(0)\n"


def test_the_patches_that_the_readme_shows_fit_its_example():
    root = Path(__file__).resolve().parents[2]
    shown = (root / "README.md").read_text().partition("`sawbones fix examples/reviews.py`")[2]
    hunks = re.findall(r"    @@.*?@@\n(.*?)\n    verified", shown, re.DOTALL)
    text = (root / "examples/reviews.py").read_text()
    assert len(hunks) == 2
    for hunk in hunks:
        lines = [line[4:] for line in hunk.splitlines()]
        old = "\n".join(line[1:] for line in lines if line[:1] != "+")
        new = "\n".join(line[1:] for line in lines if line[:1] != "-")
        assert text.count(old) == 1
        text = text.replace(old, new)
    compile(text, "reviews.py", "exec")
    assert "self.net.train()" in text and "softmax" not in text
