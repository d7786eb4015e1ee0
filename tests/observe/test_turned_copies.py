"""Pictures that are evaluated and were trained on turned or mirrored."""

from __future__ import annotations

import torch

from sawbones.faults.evaluation.leak_contamination.check import check
from sawbones.observe.signals.turned_copies import TurnedCopies
from sawbones.schema import Ending, Run
from sawbones.schema.samples import Samples

PICTURES = torch.randn(120, 1, 12, 12, generator=torch.Generator().manual_seed(4))


def _turned(pictures: torch.Tensor, seed: int) -> torch.Tensor:
    """Each by an angle of its own, half of them mirrored."""
    drawn = torch.randint(0, 8, (len(pictures),), generator=torch.Generator().manual_seed(seed))
    kinds = drawn.tolist()
    return torch.stack(
        [
            torch.rot90(p.flip(-1) if k >= 4 else p, k % 4, (-2, -1))
            for p, k in zip(pictures, kinds, strict=True)
        ]
    )


def _says(trained: list[torch.Tensor], evaluated: list[torch.Tensor]) -> list[str]:
    log = TurnedCopies()
    for pictures in trained:
        log.saw("train", [pictures])
    for pictures in evaluated:
        log.saw("eval", [pictures])
    run = Run("t.py", (), "", {}, Ending("finished"), samples=Samples(turned=log.record()))
    return [f.title for f in check(run)]


def test_copies_that_were_turned_before_the_split_are_told() -> None:
    told = _says([torch.rot90(PICTURES[:100], 1, (-2, -1))], [PICTURES[40:]])
    assert told == ["75% of the evaluated pictures were trained on, turned or mirrored"]


def test_a_score_on_the_training_part_does_not_hide_them() -> None:
    trained = PICTURES.flip(-1)
    assert _says([trained], [trained, PICTURES])


def test_other_pictures_are_no_copies() -> None:
    assert not _says([_turned(PICTURES[:60], 0)], [PICTURES[60:]])


def test_training_that_turns_its_pictures_at_random_may_be_scored_on_them_as_they_are() -> None:
    assert not _says([_turned(PICTURES, 0)], [PICTURES])


def test_boards_meet_their_mirror_by_chance() -> None:
    boards, log = (PICTURES > 0).float(), TurnedCopies()
    log.saw("train", [boards.flip(-1)])
    log.saw("eval", [boards])
    assert log.record() is None
