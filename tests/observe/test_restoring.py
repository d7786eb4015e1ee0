"""What counts as an archive cut short, and as a state that restores nothing."""

import io
from pathlib import Path

import torch

from sawbones.observe.hooks.restoring import _is_cut, _is_empty


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
