"""Containers that keep tensors with their graphs are found, with the line that fills them."""

from __future__ import annotations

import torch

from sawbones.observe.signals.holders import filling_lines
from sawbones.observe.sites import SiteFinder


class Keeper:
    def __init__(self) -> None:
        self.outputs_so_far: list[torch.Tensor] = []
        self.rows_so_far: list[tuple[int, torch.Tensor]] = []

    def see(self, value: torch.Tensor) -> None:
        self.outputs_so_far.append(value)

    def see_with_number(self, value: torch.Tensor) -> None:
        self.rows_so_far.append((len(self.rows_so_far), value))


def _codes() -> list[str]:
    return [site.code for site in filling_lines(SiteFinder())]


def test_the_line_that_fills_a_list_of_graphs_is_named() -> None:
    weight = torch.ones(3, requires_grad=True)
    keeper = Keeper()
    for _ in range(12):
        keeper.see(weight * 2)
    assert "self.outputs_so_far.append(value)" in _codes()


def test_rows_of_a_number_and_a_tensor_are_looked_through() -> None:
    weight = torch.ones(3, requires_grad=True)
    keeper = Keeper()
    for _ in range(12):
        keeper.see_with_number(weight * 2)
    assert "self.rows_so_far.append((len(self.rows_so_far), value))" in _codes()


def test_detached_tensors_are_nobodys_leak() -> None:
    weight = torch.ones(3, requires_grad=True)
    keeper = Keeper()
    for _ in range(12):
        keeper.see((weight * 2).detach())
    assert "self.outputs_so_far.append(value)" not in _codes()
