"""The signals on data and pipeline: token rows, vocabularies, redraws."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, get_worker_info

from sawbones.observe.signals import redraw
from sawbones.observe.signals.mask_fit import probe_maps
from sawbones.observe.signals.redraw import probe_redraw
from sawbones.observe.signals.samples import SampleLog, token_shift
from sawbones.observe.signals.vocabularies import Vocabularies
from sawbones.schema.held import VocabularyPair
from sawbones.schema.labels import DrawnAlike
from sawbones.schema.samples import ClassAnswers


def texts(rng: np.random.Generator, num: int, end: int | None) -> list[list[int]]:
    rows = [rng.integers(5, 20, rng.integers(3, 12)).tolist() for _ in range(num)]
    return [row + ([end] if end is not None else []) for row in rows]


def padded(rows: list[list[int]], pad: int = 0, left: bool = False) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor(
        [[pad] * (width - len(r)) + r if left else r + [pad] * (width - len(r)) for r in rows]
    )


@pytest.mark.parametrize("left", [False, True])
def test_padding_is_found_by_value_on_its_side(left: bool) -> None:
    log, rng = SampleLog(), np.random.default_rng(0)
    for _ in range(12):
        log.saw([("", padded(texts(rng, 16, None), left=left))], "train")
    found = log.record()
    assert found is not None
    assert found.rows.pad_id == 0
    assert found.rows.pad_side == ("left" if left else "right")
    assert found.rows.tight_share == 1.0


def test_batches_sorted_by_length_keep_the_usual_layout() -> None:
    log, rng = SampleLog(), np.random.default_rng(0)
    for _ in range(12):
        log.saw([("", padded(sorted(texts(rng, 16, 2), key=len, reverse=True)))], "train")
    found = log.record()
    assert found is not None
    assert found.rows.time_first is False
    assert len(found.rows.lengths) == 12 * 16


def test_a_column_that_few_rows_reach_is_not_time_first() -> None:
    log, rng = SampleLog(), np.random.default_rng(0)
    for number in range(20):
        rows = [rng.integers(5, 20, 6).tolist() for _ in range(16)]
        if number % 3 == 0:
            rows[number % 16].append(7)
        log.saw([("", padded(rows))], "train")
    found = log.record()
    assert found is not None
    assert found.rows.time_first is False


def test_targets_tell_whether_the_end_counts() -> None:
    rng = np.random.default_rng(0)
    for counted in (True, False):
        log = SampleLog()
        for _ in range(12):
            ids = padded(texts(rng, 16, 2))
            wanted = ids[:, 1:].clone()
            if not counted:
                wanted[wanted == 2] = 0
            log.saw([("", ids[:, :-1])], "train")
            log.asked(None, wanted.flatten(), 0)
        found = log.record()
        assert found is not None
        assert (2 in found.rows.targets.counted) is counted


def test_predictions_are_counted_by_class() -> None:
    log = SampleLog()
    for _ in range(10):
        log.asked(torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1]), None)
    found = log.record()
    assert found is not None
    assert found.predictions.classes == {0: ClassAnswers(10, 10, 20), 1: ClassAnswers(10, 0, 0)}


def test_places_of_a_map_are_counted_but_are_no_labels_of_samples() -> None:
    log = SampleLog()
    target = torch.zeros(2, 1, 4, 4)
    target[0, 0, 0, 0] = 1.0
    for _ in range(10):
        log.asked(torch.full((2, 1, 4, 4), -1.0), target, None)
    found = log.record()
    assert found is not None
    assert found.predictions.maps
    assert found.predictions.classes == {
        0: ClassAnswers(310, 310, 320),
        1: ClassAnswers(10, 0, 0),
    }
    assert found.labels == ()


def test_targets_that_do_not_count_tell_that_time_comes_first() -> None:
    log, rng = SampleLog(), np.random.default_rng(0)
    for _ in range(12):
        rows = [
            rng.integers(5, 20, n).tolist()
            for n in (8, *rng.choice([5, 6, 7, 8], 19, p=[0.03, 0.03, 0.04, 0.9]))
        ]
        whole = padded([[1, *row, 2] for row in rows]).T.contiguous()
        log.saw([("", whole[:-1])], "train")
        log.asked(None, whole[1:].reshape(-1), 0)
    found = log.record()
    assert found is not None
    assert (found.rows.time_first, found.rows.pad_id, found.rows.pad_side) == (
        True,
        0,
        "right",
    )
    assert found.rows.targets.copies == 1.0


def test_renumbered_ids_differ_as_they_are_and_agree_by_rank() -> None:
    train = np.array([50, 30, 10, 5, 5])
    assert token_shift(train, train).distance == pytest.approx(0.0)
    moved = token_shift(train, train[::-1].copy())
    assert moved.distance > 0.5
    assert moved.by_rank == pytest.approx(0.0)


def look_at(encode: dict[str, int], decode: dict[int, str]) -> VocabularyPair:
    found = Vocabularies()
    held = {"stoi": encode, "itos": decode}
    found._root = "held"
    found._visit("held", held, set(), 0)
    return found.record()[0]


def test_tables_that_do_not_undo_each_other_are_found() -> None:
    letters = "abcdefgh"
    encode = {c: i for i, c in enumerate(letters)}
    assert look_at(encode, dict(enumerate(letters))).moved == 0
    assert look_at(encode, dict(enumerate(reversed(letters)))).moved == 8
    assert look_at(encode, {i + 3: c for i, c in enumerate(letters)}).shifted is True


def test_vocabularies_are_found_in_the_frames_of_the_user() -> None:
    vocabulary = {
        word: i for i, word in enumerate(["one", "two", "three", "four", "five", "six", "seven"])
    }
    found = Vocabularies()
    found.look(sys._getframe())
    assert vocabulary in [held for _, held in found.encoders.values()]


class Noisy(Dataset[torch.Tensor]):
    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor(self.rng.standard_normal(4) + index)


def reseed(number: int) -> None:
    info = torch.utils.data.get_worker_info()
    assert info is not None
    info.dataset.rng = np.random.default_rng(info.seed)  # type: ignore[attr-defined]


def test_workers_with_a_copied_generator_draw_the_same() -> None:
    before = torch.get_rng_state()
    alike = probe_redraw(Noisy(), None, 2)
    apart = probe_redraw(Noisy(), reseed, 2)
    assert alike is not None
    assert apart is not None
    assert alike.alike == DrawnAlike(1.0, 1.0)
    assert apart.alike == DrawnAlike(0.0, 0.0)
    assert torch.equal(before, torch.get_rng_state())


class NoisyFromTheFirstRead(Noisy):
    """Makes its generator at the first read, as a worker from the worker's seed."""

    def __init__(self) -> None:
        super().__init__()
        self.made = False

    def __getitem__(self, index: int) -> torch.Tensor:
        if not self.made:
            info = get_worker_info()
            self.rng, self.made = np.random.default_rng(info.seed if info is not None else 0), True
        return super().__getitem__(index)


def test_a_generator_made_at_the_first_read_is_made_by_each_worker() -> None:
    apart = probe_redraw(NoisyFromTheFirstRead(), None, 2)
    assert apart is not None
    assert apart.alike == DrawnAlike(0.0, 0.0)


class Pointed(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """A bright spot in a row of 16, and where it is along two axes; half of the rows are
    mirrored.
    """

    def __init__(self, with_label: bool) -> None:
        self.with_label = with_label
        self.places = np.random.default_rng(0).integers(0, 16, (200, 2))

    def __len__(self) -> int:
        return 200

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        picture = torch.zeros(2, 16)
        picture[[0, 1], self.places[index]] = 1.0
        point = torch.tensor(self.places[index] / 7.5 - 1.0)
        if torch.rand(()) < 0.5:
            picture[0] = picture[0].flip(0)
            point = point * torch.tensor([-1.0, 1.0]) if self.with_label else point
        return picture, point


def test_the_number_that_mirrored_pictures_lose_is_singled_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redraw, "MAX_SECONDS", 600.0)  # a busy machine must not decide
    torch.manual_seed(0)
    left = probe_redraw(Pointed(with_label=False), None, 0)
    moved = probe_redraw(Pointed(with_label=True), None, 0)
    assert left is not None
    assert moved is not None
    assert left.probes is not None and left.probes.place == 0
    assert left.probes.free.score < 0.35 * left.probes.held.score
    assert moved.probes is None


def test_masks_left_behind_by_their_pictures_fit_better_mirrored() -> None:
    generator = torch.Generator().manual_seed(0)
    pairs, alone = [], []
    for number in range(32):
        mask = torch.zeros(16, 16)
        top, left = torch.randint(0, 9, (2,), generator=generator).tolist()
        mask[top : top + 5, left : left + 4] = 1.0
        picture = (mask + 0.3 * torch.randn(16, 16, generator=generator))[None]
        pairs.append((picture, mask))
        alone.append((picture.flip(-1) if number % 2 else picture, mask))
    good, bad = probe_maps(pairs), probe_maps(alone)
    noise = probe_maps([(torch.randn(1, 16, 16, generator=generator), mask) for _, mask in pairs])
    assert good is not None and bad is not None and noise is not None
    assert good.better_otherwise == 0.0
    assert bad.better_otherwise > 0.3 and bad.fit > bad.by_chance + 0.15
    assert noise.fit < noise.by_chance + 0.15


class Tiles(Dataset):
    """Every other draw is flipped from top to bottom, its mask along an axis of its own."""

    def __init__(self, axis: int) -> None:
        self.axis = axis
        self.masks = torch.zeros(40, 16, 16)
        for mask, (top, left) in zip(self.masks, torch.randint(0, 9, (40, 2)), strict=True):
            mask[top : top + 5, left : left + 4] = 1.0
        self.pictures = self.masks[:, None] + 0.3 * torch.randn(40, 1, 16, 16)

    def __len__(self) -> int:
        return 40

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        if torch.rand(()) < 0.5:
            return self.pictures[i].flip(1), self.masks[i].flip(self.axis)
        return self.pictures[i], self.masks[i]


def test_masks_that_are_flipped_along_another_axis_than_their_pictures_are_found() -> None:
    torch.manual_seed(0)
    alike, apart = probe_redraw(Tiles(0), None, 0), probe_redraw(Tiles(1), None, 0)
    assert alike is not None and alike.maps is not None and alike.label_changed > 0
    assert apart is not None and apart.maps is not None
    assert alike.maps.better_otherwise == 0.0 and apart.maps.better_otherwise > 0.3


def test_ids_of_a_part_that_is_called_alone_are_not_those_of_the_whole_model() -> None:
    log, rng = SampleLog(), np.random.default_rng(0)
    for _ in range(12):
        source = torch.from_numpy(rng.integers(4, 30, (16, 9)))
        log.saw([("args[0]", source)], "train", module=1)
        log.saw([("args[0]", source)], "eval", module=1)
        log.saw(
            [("args[0]", torch.ones_like(source))], "eval", module=2
        )  # the decoder, word by word
    found = log.record()
    assert found is not None and found.token_shift is not None
    assert found.token_shift.distance < 0.1


def test_padding_of_texts_that_stand_in_columns_is_no_token() -> None:
    log, rng = SampleLog(), np.random.default_rng(0)
    for phase, lengths in (("train", [9] * 12), ("eval", [9, *rng.integers(3, 8, 11)])):
        for _ in range(6):
            rows = padded([rng.integers(4, 20, n).tolist() for n in lengths])
            log.saw([("[0][0]", rows.T.contiguous())], phase)
    found = log.record()
    assert found is not None and found.token_shift.newcomer[0] != 0


@pytest.mark.parametrize(
    ("given", "module", "counted"),
    [("[1]['ids']", 7, True), ("[0][1]", 7, False), ("[1]['ids']", 8, False)],
    ids=["by name", "another argument", "another module"],
)
def test_only_one_argument_of_one_module_is_compared_with_itself(
    given: str, module: int, counted: bool
) -> None:
    log, rng = SampleLog(), np.random.default_rng(0)
    for _ in range(4):
        log.saw([("[0][0]", torch.tensor(rng.integers(3, 9, (8, 10))))], "train", module=7)
        log.saw([(given, torch.tensor(rng.integers(30, 90, (8, 10))))], "eval", module=module)
    found = log.record()
    assert found is not None and (found.token_shift is not None) == counted
