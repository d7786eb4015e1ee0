"""Which seeds are the user's own: those whose value a line of theirs gave to what it called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import sawbones
from sawbones.observe.options import Options

# As a library that is installed beside torch would.
_LIBRARY: dict[str, Callable[..., None]] = {}
exec(
    compile(
        "import torch\n"
        "def seed_all(seed, workers=False):\n    torch.manual_seed(seed)\n"
        "def make_trainer(settings):\n    seed_all(settings.seed)\n"
        "def work(num_workers):\n    seed_all(42)\n",
        str(Path(torch.__file__).parent / "of_a_library.py"),
        "exec",
    ),
    _LIBRARY,
)


@pytest.mark.parametrize(
    ("seeding", "handed"),
    [
        (lambda: torch.manual_seed(7), True),
        (lambda: torch.manual_seed(seed=7), True),
        (lambda: _LIBRARY["seed_all"](7, workers=True), True),
        (lambda: _LIBRARY["make_trainer"](SimpleNamespace(seed=7)), False),
        (lambda: _LIBRARY["work"](num_workers=2), False),
    ],
    ids=["torch", "by keyword", "a library's function", "inside of settings", "a library's own"],
)
def test_a_seed_is_handed_where_the_users_line_gives_it(
    seeding: Callable[[], None], handed: bool, tmp_path: Path
) -> None:
    options = Options(deep_steps=(), deep_every=0)
    with sawbones.watch(nn.Linear(2, 2), out=tmp_path / "run", options=options) as watched:
        seeding()
        run = watched.close()
    assert [event.data["handed"] for event in run.of_kind("seed")] == [handed]
