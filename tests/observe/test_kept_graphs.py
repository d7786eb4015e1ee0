"""Graphs of past steps that somebody keeps are counted by the line that made them."""

from __future__ import annotations

import torch

from sawbones.observe.signals.kept_graphs import KeptGraphs
from sawbones.observe.sites import SiteFinder

WEIGHT = torch.ones(3, requires_grad=True)


def _answer() -> torch.Tensor:
    return (WEIGHT * 2).sum()


def _counted(graphs: KeptGraphs, step: int) -> tuple[int, int]:
    graphs.stepped(step)
    return graphs.record["kept"], graphs.record["made"]


def test_scores_kept_beside_a_training_loss_that_is_let_go_are_seen() -> None:
    graphs, kept = KeptGraphs(SiteFinder()), []
    for step in range(40):
        loss = _answer()
        graphs.output(loss, step, "training")
        graphs.made(loss, step)
        score = _answer()
        graphs.output(score, step, "probe")
        kept.append(score)
    assert _counted(graphs, 40) == (29, 29)


def test_nothing_is_kept_where_both_are_let_go() -> None:
    graphs = KeptGraphs(SiteFinder())
    for step in range(40):
        graphs.output(_answer(), step, "training")
        graphs.output(_answer(), step, "probe")
    assert _counted(graphs, 40) == (0, 29)


def test_the_answers_of_one_evaluation_are_one_thing_that_is_held() -> None:
    graphs, kept = KeptGraphs(SiteFinder()), []
    for step in range(40):
        graphs.output(_answer(), step, "training")
        if step == 10:
            kept = [_answer() for _ in range(20)]
            for answer in kept:
                graphs.output(answer, step, "evaluation")
    assert len(kept) == 20 and _counted(graphs, 40)[0] == 1
