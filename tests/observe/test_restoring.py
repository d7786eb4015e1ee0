"""What counts as an archive cut short, and as a state that restores nothing."""

import copy
import io
from pathlib import Path

import torch

from sawbones.observe.hooks.restoring import _is_cut, _is_empty, _taken
from sawbones.testing import observe


def test_an_archive_without_its_directory_is_cut(tmp_path: Path) -> None:
    whole = io.BytesIO()
    torch.save({"weight": torch.zeros(4000)}, whole)
    half = whole.getvalue()[:8192]
    (tmp_path / "half.pt").write_bytes(half)
    (tmp_path / "whole.pt").write_bytes(whole.getvalue())
    assert _is_cut(io.BytesIO(half)) and _is_cut(tmp_path / "half.pt")
    assert not _is_cut(whole) and not _is_cut(tmp_path / "whole.pt")
    assert not _is_cut(tmp_path / "missing.pt") and not _is_cut(io.BytesIO(b"no archive"))


def test_the_state_of_an_optimizer_that_has_not_stepped_is_empty() -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.Adam([weight])
    assert _is_empty(optimizer.state_dict())
    weight.sum().backward()
    optimizer.step()
    assert not _is_empty(optimizer.state_dict())


def _taken_by(model: torch.nn.Module, state: dict[str, torch.Tensor]) -> dict[str, object]:
    return _taken(model, model.load_state_dict(state, strict=False), state)


def test_weights_under_other_names_are_not_taken() -> None:
    model = torch.nn.Linear(3, 2)
    other = {f"net.{name}": value.clone() for name, value in model.state_dict().items()}
    row = _taken_by(model, other)
    assert (row["given"], row["taken"], row["missing"]) == (2, 0, 2)
    assert (row["first_missing"], row["first_unexpected"]) == ("weight", "net.weight")


def test_a_state_is_the_models_own_memory_until_it_is_copied() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    state = model.state_dict()
    assert _taken_by(model, state)["same"] == len(state)
    assert _taken_by(model, copy.deepcopy(state))["same"] == 0


class _InOwnForm(torch.nn.Linear):
    """Hands its weights out under names that it has no parameters of."""

    def load_state_dict(self, state_dict, *args, **kwargs):
        return torch.nn.modules.module._IncompatibleKeys([], [])


def test_weights_under_names_of_their_own_are_not_taken_for_the_models_memory() -> None:
    model = _InOwnForm(3, 2)
    state = {"packed": torch.zeros(8)}
    assert _taken(model, model.load_state_dict(state), state)["same"] == 0


SAVED = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    model(torch.randn(8, 3)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step == 3:
        torch.save({"weights": model.state_dict()}, "best.pt")
model.load_state_dict(torch.load("best.pt")["weights"], strict=True)
model.load_state_dict({name: value + 1 for name, value in model.state_dict().items()})
"""


def test_weights_that_come_back_from_a_file_are_those_of_the_step_they_were_saved_at(
    tmp_path: Path,
) -> None:
    (tmp_path / "train.py").write_text(SAVED, encoding="utf-8")
    run = observe("train.py", root=tmp_path)
    assert [row.of_step for row in run.loaded_weights] == [4, None]
