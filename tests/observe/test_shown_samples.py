"""Examples for the page: what they hold, where they lie, and that they are asked for."""

from __future__ import annotations

import base64
import json
import stat
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from processes import Bench

from sawbones.observe.shown_samples import EXAMPLES, ShownSamples
from sawbones.store.shown import read_samples

TRAINING = """
import torch
from torch import nn
words = ["<pad>", "the", "cat", "sat", "on", "a", "mat", "dog"]
model = nn.Sequential(nn.Embedding(8, 4), nn.Flatten(), nn.Linear(12, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
ids = torch.tensor([[1, 2, 3], [5, 7, 3]])
for step in range(5):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(ids), torch.tensor([0, 1])).backward()
    optimizer.step()
"""


def taken(folder: Path, batch: object, words: object = None) -> dict[str, dict]:
    shown = ShownSamples(folder)
    shown.take(batch, 7, sys._getframe())
    found = read_samples(folder)
    assert found is not None and found["step"] == 7
    return {column["name"]: column for column in found["columns"]}


def test_pictures_are_pixels_of_which_the_extremes_are_black_and_white(tmp_path: Path) -> None:
    pixels = torch.rand(6, 3, 8, 10, generator=torch.Generator().manual_seed(0)) * 4 - 2
    (column,) = taken(tmp_path, {"image": pixels}).values()
    assert (column["kind"], column["width"], column["height"]) == ("pictures", 10, 8)
    few = pixels[:EXAMPLES]
    assert (column["low"], column["high"]) == pytest.approx((float(few.min()), float(few.max())))
    for value, picture in zip(column["values"], few, strict=True):
        shades = np.frombuffer(base64.b64decode(value), np.uint8).reshape(8, 10, 3)
        back = shades / 255 * (column["high"] - column["low"]) + column["low"]
        assert np.abs(back - picture.permute(1, 2, 0).numpy()).max() < 0.02


def test_ids_are_words_where_one_vocabulary_has_them_all(tmp_path: Path) -> None:
    words = {"a": 0, "cat": 1, "sat": 2, "on": 3, "the": 4, "mat": 5}
    ids = torch.tensor([[4, 1, 2], [0, 5, 3]])
    (column,) = taken(tmp_path, {"ids": ids}, words).values()
    assert column["kind"] == "text" and column["values"] == ["the cat sat", "a mat on"]
    (column,) = taken(tmp_path, {"ids": ids + 3}, words).values()
    assert column["kind"] == "ids" and column["values"] == ["7 4 5", "3 8 6"]
    assert column["why"] == "no vocabulary fits these ids"


def test_two_vocabularies_that_read_differently_decide_nothing(tmp_path: Path) -> None:
    both = [{w: (i + k) % 6 for i, w in enumerate("abcdef")} for k in (0, 1)]
    (column,) = taken(tmp_path, {"ids": torch.tensor([[0, 1, 2]])}, both).values()
    assert column["kind"] == "ids" and column["why"] == "several vocabularies fit"


def test_texts_are_masked_before_they_are_cut(tmp_path: Path) -> None:
    token = "hf_" + "aB3dE5gH7jK9" * 3
    batch = {"text": [f"{'x ' * 110}{token}", "plain"], "label": torch.tensor([0, 1])}
    found = taken(tmp_path, batch)
    assert found["text"]["values"][1] == "plain"
    assert "hf_" not in (tmp_path / "samples.json").read_text()


@pytest.mark.parametrize("flags", [(), ("--page",), ("--page", "--no-data")])
def test_they_are_kept_only_for_the_page_and_for_the_user_alone(
    bench: Bench, flags: tuple[str, ...]
) -> None:
    done = bench.watched(TRAINING, flags=("--quiet", *flags))
    path = done.folder / "samples.json"
    assert done.status == 0, done.stderr
    assert path.exists() is (flags == ("--page",))
    if path.exists():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        (column,) = json.loads(path.read_text())["columns"]
        assert column["values"] == ["the cat sat", "a dog sat"], column
