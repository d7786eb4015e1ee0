"""Notebooks: a real kernel with cells run twice, out of order and after a restart; and .ipynb files
from the command line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import sawbones
from sawbones.cli.main import main
from sawbones.observe.notebook import NotANotebook, as_python, cell_source, read_notebook

nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

SETUP = """import torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x = torch.randn(256, 8)
y = x[:, :3].argmax(1)"""
TRAIN = """for step in range(40):
    loss = F.cross_entropy(model(x[:32]), y[:32])
    loss.backward()
    optimizer.step()"""
ONE_STEP = """def one_step():
    loss = F.cross_entropy(model(x[:32]), y[:32])
    loss.backward()
    optimizer.step()"""
WATCH = "import sawbones\nw = sawbones.watch(model, optimizer, quiet=True)"


class Kernel:
    def __init__(self, client: Any) -> None:
        self.client = client

    def run(self, code: str, fails: bool = False) -> dict[str, str]:
        """What the cell shows, by kind: text, html, stream, error."""
        from nbformat.v4 import new_code_cell

        cell = new_code_cell(code)
        self.client.nb.cells.append(cell)
        self.client.allow_errors = fails
        self.client.execute_cell(cell, len(self.client.nb.cells) - 1)
        shown: dict[str, str] = {}
        for output in cell.outputs:
            if output.output_type == "stream":
                parts = {"stream": output.text}
            elif output.output_type == "error":
                parts = {"error": f"{output.ename}: {output.evalue}"}
            else:
                data = output.data
                parts = {"text": data.get("text/plain", ""), "html": data.get("text/html", "")}
            for kind, text in parts.items():
                shown[kind] = shown.get(kind, "") + text
        assert fails or "error" not in shown, shown["error"]
        return shown


@contextmanager
def started(folder: Path) -> Iterator[Kernel]:
    from nbformat.v4 import new_notebook

    client = nbclient.NotebookClient(
        new_notebook(), timeout=240, resources={"metadata": {"path": str(folder)}}
    )
    with client.setup_kernel():
        yield Kernel(client)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with started(tmp_path_factory.mktemp("kernel")) as running:
        running.run(SETUP)
        yield running


def test_a_watch_is_one_line_a_picture_and_a_page(kernel: Kernel) -> None:
    first = kernel.run(f"{WATCH}\nw")
    assert "recording, 0 steps" in first["text"] and not first["html"]
    trained = kernel.client.nb.cells[-1].execution_count + 1
    kernel.run(TRAIN)
    shown = kernel.run("w")
    assert "recording, 40 steps" in shown["text"] and len(shown["text"]) < 300
    assert "<svg" in shown["html"] and "loop.no-zero-grad" in shown["html"]
    assert f"In[{trained}]:3" in shown["html"], "the cell is the place"
    assert "<script" not in shown["html"] and len(shown["html"]) < 20_000
    found = kernel.run("w.diagnose()")
    assert "Diagnosis: sick, notebook, 40 steps" in found["text"]
    page = kernel.run("w.show()")
    assert "<iframe" in page["html"] and not page.get("stream"), "nothing but the page"
    assert "closed, 40 steps" in kernel.run("w.close()\nw")["text"]


def test_a_cell_that_is_run_twice_ends_the_recording_it_forgot(kernel: Kernel) -> None:
    kernel.run(WATCH)
    kernel.run("before = w.folder")
    again = kernel.run(WATCH)
    assert "was still open and ends here" in again["stream"]
    kernel.run(TRAIN)
    counts = kernel.run("w.close()\nprint(sawbones.read_run(before).num_steps, w.step)")
    assert counts["stream"].split() == ["0", "40"], "each step is in one recording"


def test_cells_out_of_order_are_named_by_their_latest_number(kernel: Kernel) -> None:
    kernel.run("def train(steps):\n    for _ in range(steps):\n        one_step()")
    kernel.run(WATCH)
    defined = kernel.client.nb.cells[-1].execution_count + 1
    kernel.run(ONE_STEP)
    kernel.run("train(25)")
    told = kernel.run("run = w.close()\nprint(run.of_kind('backward')[0].site)")
    assert told["stream"].strip() == f"In[{defined}]:3"


def test_the_magic_records_a_cell_and_shows_it_below(kernel: Kernel) -> None:
    kernel.run("%load_ext sawbones")
    shown = kernel.run(f"%%sawbones\n{TRAIN}\nloss.shape")
    number = kernel.client.nb.cells[-1].execution_count
    assert "<svg" in shown["html"] and f"In[{number}]:4" in shown["html"], shown["html"]
    assert shown["text"].startswith("torch.Size([])"), "the last value of the cell"
    kernel.run(ONE_STEP)
    failed = kernel.run("%%sawbones\none_step()\nraise ValueError('row 7 is empty')", fails=True)
    assert failed["error"] == "ValueError: row 7 is empty" and "CRASHED" in failed["html"]
    assert "1 steps" in kernel.run("%sawbones one_step()")["text"]


def test_the_magic_goes_on_over_cells(kernel: Kernel) -> None:
    kernel.run("%load_ext sawbones")
    kernel.run("%sawbones on kept")
    assert "<svg" in kernel.run(TRAIN)["html"], "a cell that trains has its picture"
    assert "html" not in kernel.run("rows = x[:4]"), "another has none"
    kernel.run("%sawbones off")
    kernel.run(TRAIN)
    assert "closed, 40 steps" in kernel.run("%sawbones")["text"]


@pytest.mark.long
def test_a_restarted_kernel_leaves_a_recording_that_can_be_read(tmp_path: Path) -> None:
    from nbclient.util import run_sync

    with started(tmp_path) as running:
        running.run(SETUP)
        running.run(f"{WATCH}\nw.folder")
        running.run(TRAIN)
        running.run("w.flush()")
        run_sync(running.client.km.restart_kernel)(now=True)
        run_sync(running.client.kc.wait_for_ready)(timeout=120)
        assert "NameError" in running.run("w", fails=True)["error"]
        running.run(f"{SETUP}\n{WATCH}\n{TRAIN}\nw.close()")
    first, second = sorted((tmp_path / ".sawbones").glob("notebook-*"))
    assert sawbones.read_run(first).ending.kind == "killed"
    assert sawbones.read_run(second).ending.kind == "finished"
    assert [sawbones.read_run(folder).num_steps for folder in (first, second)] == [40, 40]


# ----- files


def _notebook(path: Path, *cells: str) -> Path:
    code: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": []}
    written = [{**code, "source": text.splitlines(keepends=True)} for text in cells]
    markdown = {"cell_type": "markdown", "metadata": {}, "source": "# Training"}
    document = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [markdown, *written]}
    path.write_text(json.dumps(document))
    return path


def test_a_notebook_is_diagnosed_with_cells_as_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _notebook(tmp_path / "train.ipynb", "!pip install torch", "", SETUP, f"%%time\n{TRAIN}")
    with pytest.raises(SystemExit) as end:
        main(["diagnose", "--no-experiments", "--json", "report.json", "train.ipynb"])
    assert end.value.code == 1
    told = capsys.readouterr()
    assert "left out of train.ipynb[1]: !pip install torch" in told.err
    (finding,) = json.loads((tmp_path / "report.json").read_text())["findings"]
    assert finding["fault"] == "loop.no-zero-grad"
    assert (finding["where"][0]["file"], finding["where"][0]["line"]) == ("train.ipynb[3]", 4)
    assert finding["where"][0]["code"] == "loss.backward()"
    assert "+    optimizer.zero_grad()" in finding["fix"]["patch"]


def test_what_only_ipython_understands_is_left_out_and_lines_stay() -> None:
    cell = as_python(
        1, "%matplotlib inline\n!pip install \\\n  torch\nif True:\n    !ls\nmodel?\na = 1"
    )
    assert cell.left_out == ("%matplotlib inline", "!pip install", "!ls", "model?")
    assert cell.source.split("\n")[6] == "a = 1"
    compile(cell.source, "cell", "exec")
    assert as_python(1, "%time train(3)").source == "train(3)"
    assert as_python(1, "x = '''\n%not a magic\n'''").left_out == ()
    bash = as_python(1, "%%bash\nls")
    assert bash.left_out == ("%%bash",) and not bash.source.replace("#", "").startswith("ls")
    broken = as_python(1, "def f(:\n    pass")
    assert broken.source == "def f(:\n    pass", "a mistake of the user's is theirs to see"


def test_a_file_that_is_no_notebook_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "train.ipynb"
    file.write_text('{"worksheets": []}')
    with pytest.raises(NotANotebook, match="format 4"):
        read_notebook(file)
    for command in ("diagnose", "fix"):
        with pytest.raises(SystemExit) as end:
            main([command, str(file)])
        assert end.value.code == 2
    assert "format 4" in capsys.readouterr().err
    assert cell_source(str(tmp_path / "none.ipynb[1]")) is None
