"""Tasks, splits, tokenizers, collation and sampling."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from sawbones.trainer import grammar
from sawbones.trainer.augmentation import augment_safely, augmentation
from sawbones.trainer.collation import IGNORE_INDEX, PAD_MULTIPLE, Encoded, check_batch, collate
from sawbones.trainer.config import TASKS, DataConfig
from sawbones.trainer.data import build_data, fit_tokenizer
from sawbones.trainer.errors import BatchError, CheckpointError, ConfigError, SplitLeak
from sawbones.trainer.sampling import BatchStream, BucketSampler, eval_batches
from sawbones.trainer.tasks import Example, Splits, build_splits, check_disjoint, content_hash
from sawbones.trainer.tokenization import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    UNK_ID,
    TextTokenizer,
    check_same,
    train_tokenizer,
    truncate,
)


def data_config(task, **more):
    return DataConfig(task=task, num_train=300, num_val=50, num_test=50, **more)


@pytest.mark.parametrize("task", TASKS)
def test_splits_share_no_content(task):
    splits = build_splits(data_config(task))
    keys = [
        {key for e in part for key in e.keys} for part in (splits.train, splits.val, splits.test)
    ]
    assert not keys[0] & keys[1] and not keys[0] & keys[2] and not keys[1] & keys[2]
    assert [len(p) for p in (splits.train, splits.val, splits.test)] == [300, 50, 50]


def test_a_leak_between_splits_is_named():
    example = Example("abc", "cba", ("abc",))
    with pytest.raises(SplitLeak, match=r"'abc' is in the train and in the test split"):
        check_disjoint(Splits([example], [], [example]))


def test_the_answers_are_right():
    for e in build_splits(data_config("copy")).train:
        assert e.target == e.source
    for e in build_splits(data_config("reverse")).train:
        assert e.target == e.source[::-1]
    for e in build_splits(data_config("sort")).train:
        assert e.target == "".join(sorted(e.source))


def test_every_sentence_has_one_translation():
    translations = {}
    language, rng = grammar.load("translation_grammar.txt"), random.Random(1)
    for _ in range(4000):
        source, target = language.sample(rng)
        assert translations.setdefault(source, target) == target
    assert len({len(s.split()) for s in translations}) > 8, "lengths vary"
    assert len({w for s in translations for w in s.split()}) > 100, "a real vocabulary"


def test_grammar_mistakes_are_named():
    with pytest.raises(ConfigError, match="do not expand the same names"):
        grammar.Grammar.parse("S -> a NP => b")
    with pytest.raises(ConfigError, match="uses NP, which has no rule"):
        grammar.Grammar.parse("S -> a NP")
    with pytest.raises(ConfigError, match="line 1"):
        grammar.Grammar.parse("nonsense")


def test_a_task_that_runs_dry_says_so():
    with pytest.raises(ConfigError, match="no 50 distinct examples left after 26"):
        build_splits(data_config("copy", min_length=1, max_length=1))


def test_the_seed_decides_the_data():
    same = [content_hash(build_splits(data_config("translation", seed=s))) for s in (1, 1, 2)]
    assert same[0] == same[1] != same[2]


@pytest.mark.parametrize("task", TASKS)
def test_augmentation_keeps_the_answer_and_never_makes_held_out_content(task):
    examples, augment, rng = (
        build_splits(data_config(task)).train[:40],
        augmentation(task),
        random.Random(0),
    )
    right = {
        "copy": lambda s: s,
        "reverse": lambda s: s[::-1],
        "sort": lambda s: "".join(sorted(s)),
    }
    changed = 0
    for e in examples:
        variant = augment(e, rng)
        changed += variant != e
        if task in right:
            assert variant.target == right[task](variant.source)
        elif task == "translation":
            assert variant.target == e.target
        else:
            assert sorted(variant.target.split()) == sorted(e.target.split())
        assert augment_safely(lambda e, _, v=variant: v, e, rng, frozenset(variant.keys)) == e
    assert changed > 5


@pytest.mark.parametrize("kind", ["char", "bpe"])
@pytest.mark.parametrize("task", TASKS)
def test_tokenizers_round_trip_held_out_text(kind, task):
    splits = build_splits(data_config(task))
    tokenizer = fit_tokenizer(splits, kind, 400)
    for e in splits.test:
        assert tokenizer.decode([BOS_ID, *tokenizer.encode(e.target), EOS_ID, PAD_ID]) == e.target
        assert UNK_ID not in tokenizer.encode(e.target)
    assert TextTokenizer.from_json(tokenizer.to_json()).encode(e.target) == tokenizer.encode(
        e.target
    )


def test_special_ids_are_distinct_and_unknown_text_is_unk():
    tokenizer = train_tokenizer("char", ["abc"])
    assert len({PAD_ID, BOS_ID, EOS_ID, UNK_ID}) == 4
    assert tokenizer.encode("a?") == [4, UNK_ID]
    assert min(tokenizer.encode("abc")) > UNK_ID


def test_bpe_training_is_the_same_in_every_process():
    code = (
        "import hashlib; from sawbones.trainer.tokenization import train_tokenizer as t;"
        "print(hashlib.sha256(t('bpe', ['the old dog', 'the old cat', 'a dog ran'] * 9, 60).to_json().encode()).hexdigest())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        for _ in "ab"
    }
    assert len(runs) == 1


def test_another_tokenizer_is_refused():
    one, two = (train_tokenizer("char", [text]).to_json() for text in ("abc", "abd"))
    check_same(one, one)
    with pytest.raises(CheckpointError, match="tokenizer differs"):
        check_same(one, two)


def test_truncation_keeps_eos():
    ids = truncate(range(10, 30), 8)
    assert len(ids) == 7
    batch = collate([Encoded(tuple(ids), tuple(ids))])
    check_batch(batch, 40, 8)
    assert batch.labels_BT[0, 7] == EOS_ID and batch.source_BS[0, 7] == EOS_ID


def a_batch():
    return collate(
        [
            Encoded((5, 6, 7), (7, 6, 5)),
            Encoded((8,), (8,)),
            Encoded((9, 9, 9, 9, 9, 9, 9, 9), (5,) * 9),
        ]
    )


def test_a_collated_batch_keeps_its_invariants():
    batch = a_batch()
    check_batch(batch, 10, 16)
    assert batch.decoder_input_BT.shape[1] % PAD_MULTIPLE == 0
    assert batch.decoder_input_BT[0, :5].tolist() == [BOS_ID, 7, 6, 5, PAD_ID]
    assert batch.labels_BT[0, :5].tolist() == [7, 6, 5, EOS_ID, IGNORE_INDEX]
    assert batch.num_targets == 4 + 2 + 10
    ignored = (batch.labels_BT == IGNORE_INDEX).double().mean()
    assert ignored == (~batch.decoder_mask_BT).double().mean()


def flipped(tensor):
    return tensor.flip(1)


BREAKS = {
    "mask is not True exactly": lambda b: replace(
        b, decoder_mask_BT=torch.ones_like(b.decoder_mask_BT)
    ),
    "source mask is torch.int64": lambda b: replace(b, source_mask_BS=b.source_mask_BS.long()),
    "ids are torch.int32": lambda b: replace(b, decoder_input_BT=b.decoder_input_BT.int()),
    "padded on the left": lambda b: replace(
        b, source_BS=flipped(b.source_BS), source_mask_BS=flipped(b.source_mask_BS)
    ),
    "ignore_index exactly on PAD": lambda b: replace(
        b, labels_BT=b.labels_BT.masked_fill(b.labels_BT == IGNORE_INDEX, PAD_ID)
    ),
    "does not end in EOS": lambda b: replace(
        b, labels_BT=b.labels_BT.masked_fill(b.labels_BT == EOS_ID, 5)
    ),
    "shifted by one": lambda b: replace(b, labels_BT=b.labels_BT.masked_fill(b.labels_BT == 6, 4)),
    "num_targets is 3": lambda b: replace(b, num_targets=3),
}


@pytest.mark.parametrize("message", BREAKS)
def test_every_broken_invariant_is_caught(message):
    with pytest.raises(BatchError, match=message):
        check_batch(BREAKS[message](a_batch()), 10, 16)


def test_ids_and_lengths_are_bounded():
    with pytest.raises(BatchError, match=r"span 0..9, the vocabulary 0..8"):
        check_batch(a_batch(), 9, 16)
    with pytest.raises(BatchError, match="the limit is 6"):
        check_batch(a_batch(), 10, 6)


def test_batches_hold_similar_lengths_and_epochs_differ():
    rng = random.Random(0)
    lengths = [rng.randint(1, 60) for _ in range(1000)]
    sampler = BucketSampler(lengths, 50, seed=1)
    first = sampler.global_batches()
    assert sorted(i for b in first for i in b) == list(range(1000))
    assert (
        sum(max(lengths[i] for i in b) - min(lengths[i] for i in b) for b in first) / len(first) < 5
    )
    assert [b[0] for b in first] != sorted([b[0] for b in first], key=lengths.__getitem__), (
        "not sorted by length"
    )
    sampler.set_epoch(1)
    assert sampler.global_batches() != first


def test_ranks_share_each_global_batch():
    one = list(BucketSampler(range(100), 10, seed=1))
    two = [list(BucketSampler(range(100), 10, seed=1, rank=r, world_size=2)) for r in (0, 1)]
    for whole, left, right in zip(one, *two, strict=True):
        assert sorted(whole) == sorted(left + right) and not set(left) & set(right)
    with pytest.raises(ConfigError, match="does not split over 3 ranks"):
        BucketSampler(range(100), 10, seed=1, world_size=3)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_goes_on_where_it_was(make_config, workers):
    config = make_config()
    data = build_data(config)

    def stream():
        return BatchStream(
            data.train, BucketSampler(data.train.lengths(), 16, seed=1), workers=workers
        )

    whole = stream()
    batches = [
        next(whole).decoder_input_BT for _ in range(20)
    ]  # 12 batches an epoch: 20 end in the second
    first = stream()
    for _ in range(15):
        next(first)
    rest = stream()
    rest.seek(first.position())
    assert first.position() == {"epoch": 1, "batch": 3}
    for expected in batches[15:]:
        assert torch.equal(next(rest).decoder_input_BT, expected)


def test_augmentation_differs_between_epochs_and_not_between_reads(make_config):
    data = build_data(make_config())
    first = [data.train[i] for i in range(100)]
    assert first == [data.train[i] for i in range(100)]
    assert first != data.train.encoded[:100]
    data.train.epoch = 1
    assert first != [data.train[i] for i in range(100)]


def test_evaluation_reads_every_example_once_over_all_ranks(make_config):
    val = build_data(make_config()).val
    rows = [sum(len(b) for b in eval_batches(val, 5, rank, 3)) for rank in range(3)]
    assert sum(rows) == len(val)
