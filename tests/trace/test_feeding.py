"""Where the data of a run is made: inside of the collate function before anywhere else."""

from __future__ import annotations

from sawbones.schema import DeepStep, Ending, Loader, Op, Run, Site, Value
from sawbones.trace.feeding import data_sites

COLLATE = Site("train.py", 9, "collate", "def collate(rows):")
SHIFTED = Site("train.py", 14, "collate", "labels = torch.cat([ids[:, 1:], end], dim=1)")
POSITIONS = Site("model.py", 3, "forward", "at = torch.cat([zeros, steps], dim=1)")


def _run(*sites: Site) -> Run:
    made = (Value(7, (16, 29), "int64"),)
    ops = tuple(Op(i, "cat", site, "", (), made) for i, site in enumerate(sites))
    steps = (DeepStep(0, 0), DeepStep(1, 1, ops=ops))
    loaders = (Loader(0, collate_site=COLLATE),)
    return Run("train.py", (), "", {}, Ending("finished"), loaders=loaders, deep=steps)


def test_a_line_of_the_collate_function_stands_before_its_head_and_before_others() -> None:
    found = data_sites(_run(POSITIONS, SHIFTED), (16, 30), frozenset({"cat"}))
    assert found == (SHIFTED, COLLATE, POSITIONS)


def test_where_no_line_of_it_was_seen_the_function_itself_comes_first() -> None:
    assert data_sites(_run(POSITIONS), (16, 30), frozenset({"cat"})) == (COLLATE, POSITIONS)
    assert data_sites(_run(SHIFTED), (4, 4), frozenset({"cat"})) == (COLLATE,)
