"""From the line that uses data to the line that made it."""

from __future__ import annotations

import ast

import pytest

from sawbones.observe.signals.source_files import SourceFile
from sawbones.observe.signals.source_lines import user_lines
from sawbones.observe.sites import SiteFinder
from sawbones.schema import Ending, Run, Site
from sawbones.trace.given_lines import given_lines

SCRIPT = """
table = read(path)
mean = table.mean(0)
x_train = torch.from_numpy(table[:80])
x_held = (torch.from_numpy(table[80:]) - mean).unsqueeze(1)
moved = x_train.to(device)


def train(features):
    part = moved[rows]
    other = features[rows]
    loss = criterion(model(part), y[rows])
    guess = model(other)
    return model(x_held[a : a + 64].to(device)), loss, guess


for batch in loader:
    loss = model(batch)
    x_train = x_train.cuda()
    out = model(x_train[rows]).squeeze(1)
    wide = model(
        x_held,
    )
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    file = tmp_path_factory.mktemp("given") / "train.py"
    file.write_text(SCRIPT)
    source = SourceFile(str(file), ast.parse(SCRIPT), SCRIPT.splitlines(), {})
    rows = user_lines(SiteFinder(str(file.parent)), [source])
    return Run("train.py", (), str(file.parent), {}, Ending("finished"), source_lines=rows)


def lines(run: Run, code: str, function: str = "<module>") -> list[int]:
    line = next(i for i, text in enumerate(SCRIPT.splitlines(), 1) if text.strip().startswith(code))
    file = run.source_lines[0].site.file
    return [
        site.line
        for site in given_lines(
            run, Site(file, line, function, SCRIPT.splitlines()[line - 1].strip())
        )
    ]


def test_a_part_on_another_device_is_followed_to_where_the_whole_was_made(run: Run) -> None:
    assert lines(run, "loss = criterion", "train") == [4]
    assert lines(run, "return model", "train") == [5]
    assert lines(run, "out = model") == [4]


@pytest.mark.parametrize(
    "code", ["loss = model(batch)", "wide = model("], ids=["a loop's own variable", "several lines"]
)
def test_what_cannot_be_read_off_the_source_is_left_alone(run: Run, code: str) -> None:
    assert lines(run, code) == []


def test_an_argument_ends_the_search(run: Run) -> None:
    assert lines(run, "guess = model", "train") == []
    assert given_lines(run, None) == ()
