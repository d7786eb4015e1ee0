"""A vocabulary of its own for each split, told by answers that are right in training and by chance
in validation.
"""

from __future__ import annotations

import numpy as np
import pytest

from sawbones.faults.pipeline.special_tokens import check as special_tokens
from sawbones.faults.pipeline.tokenizer_mismatch import check as tokenizer_mismatch
from sawbones.observe.signals.samples import read_rows
from sawbones.schema import Ending, Run, Site
from sawbones.schema.evaluation import Evaluation, Met, Node
from sawbones.schema.held import VocabularyPair
from sawbones.schema.samples import ClassAnswers, Predictions, Samples


def run_of(trained: float, held_out: float, moved: int = 38, classes: int = 2) -> Run:
    """300 answers in training and 300 in validation, and two vocabularies that share 40 entries."""
    each = 300 // classes
    pair = VocabularyPair(
        "vocabularies",
        ("stoi", "stoi"),
        40,
        moved,
        (("sturdy", 4, 9),),
        False,
        ("train_vocab", "val_vocab"),
    )
    right = int(each * trained)
    node = Node(
        0,
        "eq",
        Site("train.py", 7, "evaluate"),
        ("output", "target"),
        result=Met(num=300, mean=held_out),
        target_counts=dict.fromkeys(range(classes), each),
    )
    told = Samples(Predictions(20, {k: ClassAnswers(each, right, each) for k in range(classes)}))
    return Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        vocabularies=(pair,),
        samples=told,
        evaluation=Evaluation(nodes=(node,)),
    )


def test_answers_by_chance_under_another_numbering_are_named() -> None:
    (finding,) = tokenizer_mismatch.check(run_of(0.96, 0.49))
    assert finding.status == "likely"


def test_how_well_a_task_was_learned_is_seen_beside_a_constant_answer() -> None:
    assert len(list(tokenizer_mismatch.check(run_of(0.8, 0.2, classes=4)))) == 1
    assert list(tokenizer_mismatch.check(run_of(0.8, 0.49, classes=2))) == []


@pytest.mark.parametrize(
    ("trained", "held_out", "moved"),
    [
        (0.96, 0.9, 38),  # the second vocabulary is for something else: rows of pretrained vectors
        (0.55, 0.49, 38),  # nothing has been learned
        (0.96, 0.49, 0),  # one and the same vocabulary
    ],
)
def test_other_second_vocabularies_stay_silent(trained: float, held_out: float, moved: int) -> None:
    assert list(tokenizer_mismatch.check(run_of(trained, held_out, moved))) == []


@pytest.mark.parametrize(("letters_from", "named"), [(0, True), (1, False)])
def test_a_letter_with_the_id_of_padding_is_named_however_common_it_is(
    letters_from: int, named: bool
) -> None:
    rng = np.random.default_rng(0)
    batches, targets = [], {}
    for number in range(10):
        rows = np.zeros((16, 12), np.int64)
        for row in rows:
            length = int(rng.choice([7, 11]))
            row[:length] = rng.integers(letters_from, 5, length)
            row[length] = 9  # the end of the text
        batches.append(rows[:, :-1])
        targets[number] = (rows[:, 1:], 0)
    samples = Samples(rows=read_rows(batches, targets, list(range(10))))
    run = Run("train.py", (), "", {}, Ending("finished"), samples=samples)
    found = list(special_tokens.check(run))
    assert len(found) == named
