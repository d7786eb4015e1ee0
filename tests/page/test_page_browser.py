"""The live page in a real Chromium: a real training, three runs side by side, a million steps."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect
from test_page import Recording

from reading_back import axis, marks
from sawbones.page.hub import Hub
from sawbones.page.server import PageServer
from sawbones.schema.one_off import Logged
from sawbones.store import read_run

pytestmark = pytest.mark.browser
TRAINING = """
import time, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), 0.05)
for step in range(100):
    optimizer.zero_grad()
    x = torch.randn(16, 8)
    loss = torch.nn.functional.cross_entropy(model(x), x.argmax(1) % 3)
    loss.backward()
    optimizer.step()
    time.sleep(0.05)
"""
A_MILLION = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999999)
INSERT INTO raw_steps(row, step, optimizer, time, loss, lr, step_ms, deep, skipped)
SELECT i, i, 0, i * 0.01, 1 + ((i * 7919) % 1000) / 1000.0, 0.001, 10, 0, 0 FROM n
"""


def test_the_page_follows_a_real_training(visit, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    command = [sys.executable, "-m", "sawbones", "run", "--page", "--out", "run", "train.py"]
    training = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        link = re.search(r"http://\S+", training.stderr.readline()).group()
        page = visit(link)
        expect(page.locator("#state")).to_have_text("Training", timeout=20_000)
        seen = [int(page.locator("#numbers dd").first.inner_text())]
        expect(page.locator("#numbers dd").first).not_to_have_text(str(seen[0]), timeout=5_000)
        seen.append(int(page.locator("#numbers dd").first.inner_text()))
        assert seen[0] < seen[1] <= 99
        assert training.poll() is None, "it grows while the training goes on"
        expect(page.locator("#state")).to_contain_text("after 100 steps", timeout=30_000)
        assert training.wait(30) == 0
        db = sqlite3.connect(tmp_path / "run" / "run.db")
        losses = dict(db.execute("SELECT step, loss FROM raw_steps").fetchall())
        db.close()
        drawn = marks(page, "loss")
        to_x, to_y = axis(drawn["x"]), axis(drawn["y"])
        ((_, points),) = drawn["lines"]
        assert len(points) == 100
        for x, y in points:
            assert to_y(y) == pytest.approx(losses[round(to_x(x))], abs=0.02)
        expect(page.locator("#layers .plot svg").first).to_be_visible(timeout=20_000)
        expect(page.locator("#data")).to_contain_text("The latest batch")
        expect(page.locator("#ranks")).to_contain_text("one process")
        assert page.trouble == []
    finally:
        training.kill()
        training.communicate()


def test_three_runs_are_compared(visit, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("first", "second", "third")]
    for number, folder in enumerate(folders):
        made = Recording(folder, seed=1 if number < 2 else 2)
        made.steps(20)
        made.steps(20, **({"loss": 4.0 + number} if number else {}))
        made.end()
    server = PageServer(Hub(folders))
    server.start()
    try:
        for width, scheme in ((1200, "light"), (390, "dark")):
            page = visit(server.link, width=width, color_scheme=scheme)
            expect(page.locator("#compare")).to_contain_text("part at step 20", timeout=20_000)
            expect(page.locator("#compare")).to_contain_text("2.1")
            drawn = marks(page, "loss")
            assert [name for name, _ in drawn["lines"]] == ["first", "second", "third"]
            ends = [axis(drawn["y"])(points[-1][1]) for _, points in drawn["lines"]]
            assert ends[1:] == pytest.approx([5.0, 6.0], abs=0.05)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.trouble == []
    finally:
        server.stop()


def test_a_million_steps_are_drawn_within_a_second_with_their_spike(visit, tmp_path: Path) -> None:
    made = Recording(tmp_path / "run")
    made.steps(1)
    made.end()
    db = sqlite3.connect(tmp_path / "run" / "run.db")
    db.execute(A_MILLION)
    db.execute("UPDATE raw_steps SET loss = 50 WHERE row = 654321")
    db.commit()
    db.close()
    hub = Hub([tmp_path / "run"])
    while hub.runs[0].poll():
        pass
    hub.version = 1  # what needs the whole run is not what is timed here
    server = PageServer(hub)
    server.hub.start = lambda: None
    server.start()
    try:
        # From the opening of the page until its curves stand; other work may slow one of three.
        took_ms = []
        for _ in range(3):
            page = visit(server.link)
            took_ms.append(page.evaluate("performance.now()"))
        assert min(took_ms) < 1000
        drawn = marks(page, "loss")
        ((_, points),) = drawn["lines"]
        to_x, to_y = axis(drawn["x"]), axis(drawn["y"])
        top = min(points, key=lambda point: point[1])
        assert to_y(top[1]) == pytest.approx(50, abs=0.5)
        assert to_x(top[0]) == pytest.approx(654321, abs=3000)
        page.locator("#plot-loss").focus()
        for _ in range(9):
            page.keyboard.press("+")
        page.wait_for_function("Sawbones.charts[0].figure.lines[0].x.length < 3000")
        assert page.trouble == []
    finally:
        server.stop()


CLASSIFIER = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
y = torch.arange(60) % 3
x = torch.zeros(60, 1, 8, 8)
x[torch.arange(60), 0, 2 * y, :] = 1.0
train, test = (DataLoader(TensorDataset(x, y), 20, shuffle=False) for _ in range(2))
model = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), 0.02)
for epoch in range(2):
    for a, b in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(a), b).backward()
        optimizer.step()
    with torch.no_grad():
        for a, b in test:
            model(a).argmax(1)
"""


def test_samples_answers_and_weights_are_shown_as_they_were(visit, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CLASSIFIER)
    command = [sys.executable, "-m", "sawbones", "run", "--page", "--quiet", "--out", "run"]
    subprocess.run([*command, "train.py"], cwd=tmp_path, check=True, capture_output=True)
    run = read_run(tmp_path / "run")
    server = PageServer(Hub([tmp_path / "run"]))
    server.start()
    try:
        for width, scheme in ((1200, "light"), (390, "dark")):
            page = visit(server.link, width=width, color_scheme=scheme)
            expect(page.locator("#data canvas")).to_have_count(4, timeout=20_000)
            shades = page.evaluate(
                "[...document.querySelectorAll('#data canvas')].map((one) => {"
                " const all = one.getContext('2d').getImageData(0, 0, 8, 8).data;"
                " return [0, 2, 4].map((row) => all[4 * (8 * row + 3)]); })"
            )
            assert shades == [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 0, 0]]
            expect(page.locator("#data .samples")).to_contain_text("0120")
            last = run.evaluated[-1]
            if width > 1000:
                counts = page.locator("#data .count").all_text_contents()
                assert [int(text) for text in counts] == [n for row in last.matrix for n in row]
            expect(page.locator("#data")).to_contain_text(f"{last.accuracy:.1%} of 60 answers")
            drawn = marks(page, "accuracy")
            ((_, points),) = drawn["lines"]
            heights = [axis(drawn["y"])(y) for _, y in points]
            assert heights == pytest.approx([e.accuracy for e in run.evaluated], abs=0.01)
            bars = page.evaluate(
                "[...document.querySelectorAll('#layers .gallery .plot')].map((plot) =>"
                " [...plot.querySelectorAll('.column')].map((bar) => +bar.getAttribute('height')))"
            )
            told = {w.name: w.counts for w in run.deep[-1].weights}
            assert len(bars) == len(told)
            for heights, counts in zip(bars, told.values(), strict=True):
                shares = [height / max(heights) for height in heights]
                assert shares == pytest.approx([n / max(counts) for n in counts], abs=0.01)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.trouble == []
    finally:
        server.stop()


def test_what_a_trainer_logs_is_drawn_beside_our_own_curves(visit, tmp_path: Path) -> None:
    made = Recording(tmp_path / "run")
    made.steps(40)
    for number in range(10):
        metrics = {"loss": 2.0 - number / 10, "eval/f1 <b>": number / 10}
        made.writer.record("logged", number, Logged(4 * number, 4 * number, None, metrics))
    made.end()
    served = PageServer(Hub([tmp_path / "run"]))
    served.start()
    try:
        page = visit(served.link)
        expect(page.locator("#now")).to_contain_text("eval/f1 <b>", timeout=20_000)
        expect(page.locator("#now [data-title] .plot svg")).to_have_count(2)
        first = page.locator("#now .body > *").first
        expect(first).to_have_class("panels")
        assert page.trouble == []
    finally:
        served.stop()
