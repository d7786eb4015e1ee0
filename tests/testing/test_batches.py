"""assert_batches: every rule broken by one sample, which is named."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

from sawbones.testing import assert_batches

TEXTS = [[5, 6, 7], [8, 9], [5, 6, 7, 8], [9, 5]]


def collate(rows: list[list[int]], **change: Any) -> dict[str, torch.Tensor]:
    longest = max(map(len, rows))
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    lengths = torch.tensor([len(row) for row in rows])
    labels = ids.masked_fill(ids == 0, -100)
    return {"ids": ids, "mask": (ids != 0).long(), "labels": labels, "lengths": lengths}


RULES: dict[str, Any] = {
    "shapes": {"ids": ("B", "T"), "labels": ("B", "T"), "lengths": ("B",)},
    "dtypes": {"ids": torch.int64},
    "bounds": {"ids": (0, 9), "labels": (1, 9)},
    "tokens": "ids",
    "pad_id": 0,
    "mask": "mask",
    "lengths": "lengths",
}


def _loader(change: Any = None, texts: list[list[int]] = TEXTS) -> DataLoader[Any]:
    def changed(rows: list[list[int]]) -> dict[str, torch.Tensor]:
        batch = collate(rows)
        if change is not None and [9, 5] in rows:  # sample 3, the last of the second batch
            change(batch)
        return batch

    return DataLoader(texts, batch_size=2, collate_fn=changed)  # type: ignore[arg-type]


def test_batches_that_hold_to_the_rules_pass_and_no_random_number_is_used_up() -> None:
    before = torch.random.get_rng_state()
    assert_batches(_loader(), **RULES)
    assert_batches(DataLoader(torch.ones(8, 3), batch_size=4, shuffle=True), shapes={"": (4, 3)})
    assert torch.equal(before, torch.random.get_rng_state())


def _set(name: str, place: tuple[int, ...], value: int) -> Any:
    return lambda batch: batch[name].__setitem__(place, value)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_set("labels", (1, 0), 12), "sample 3, batch 1, example 1, position 0: 'labels' is 12"),
        (_set("ids", (1, 1), -1), "'ids' is -1, and 1 of 8 in all; expected 0 to 9"),
        (_set("mask", (1, 2), 1), "sample 3, .*position 2: 'mask' is 1 at padding"),
        (_set("mask", (1, 0), 0), "sample 3, .*position 0: 'mask' is 0 at a token"),
        (_set("lengths", (1,), 3), "sample 3, .*'lengths' is 3; expected 2"),
        (_set("ids", (1, 0), 0), "sample 3, .*padding|'mask' is"),
        (lambda b: b["ids"].__setitem__(1, 0), "sample 3, .*'ids' is all padding"),
        (lambda b: b["ids"].__setitem__((0, 1), 0), "between tokens .positions 1"),
        (lambda b: b.pop("mask"), "batch 1 has the parts"),
        (lambda b: b.update(ids=b["ids"].float()), "batch 1: 'ids' has the dtype torch.float32"),
        (lambda b: b.update(labels=b["labels"][:, :2]), "expected T = 4, as in 'ids'"),
        (lambda b: b.update(labels=b["labels"][:1]), "different numbers of examples"),
    ],
)
def test_the_sample_that_breaks_a_rule_is_named(change: Any, told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        assert_batches(_loader(change), **RULES)


def test_a_collate_function_that_sorts_does_not_change_which_sample_is_named() -> None:
    def longest_first(rows: list[list[int]]) -> dict[str, torch.Tensor]:
        rows.sort(key=len, reverse=True)  # in place, as it is often written
        batch = collate(rows)
        batch["labels"][0, 0] = 12
        return batch

    texts = [[5, 6], [8, 9, 3], [9, 5, 2, 4]]
    loader: Any = DataLoader(texts, batch_size=3, collate_fn=longest_first)  # type: ignore[arg-type]
    with pytest.raises(
        AssertionError, match=r"^sample 2, batch 0, example 0, position 0: 'labels'"
    ):
        assert_batches(loader, **RULES)

    def spoiled(rows: list[list[int]]) -> dict[str, torch.Tensor]:
        batch = longest_first(rows)
        batch["ids"][:2] += 1
        batch["labels"][:2] = 12  # two of four fit nothing any more
        return batch

    more: Any = DataLoader([*texts, [7, 7, 7, 7, 7]], batch_size=4, collate_fn=spoiled)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match=r"^one of the samples 2, 3, batch 0, example 0"):
        assert_batches(more, bounds={"labels": (1, 9)})


def test_values_that_are_not_finite_need_no_rule() -> None:
    rows = torch.ones(6, 2)
    rows[4, 1] = torch.nan
    with pytest.raises(AssertionError, match="sample 4, batch 2, example 0, position 1: '' is nan"):
        assert_batches(DataLoader(rows, batch_size=2))
    assert_batches(DataLoader(rows, batch_size=2), most=2)


def test_other_loaders_name_the_batch_and_the_example() -> None:
    class Stream(IterableDataset[Any]):
        def __iter__(self) -> Any:
            yield from [(torch.ones(2), 0), (torch.ones(2), 7)]

    with pytest.raises(AssertionError, match=r"^batch 0, example 1: '1' is 7"):
        assert_batches(DataLoader(Stream(), batch_size=2), bounds={"1": (0, 3)})
    with pytest.raises(AssertionError, match="no part 'y'; expected one of 0, 1"):
        assert_batches(DataLoader(Stream(), batch_size=2), bounds={"y": (0, 3)})
    with pytest.raises(AssertionError, match="gives no batch"):
        assert_batches([])
