"""A subject in its forms, found by name, and its settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import subjects
import torch

from sawbones.schema.errors import SawbonesError
from sawbones.triage import Subject, SubjectNotFound, as_subject, load_subject, project_grades

FILE = Path(subjects.__file__)


@pytest.mark.parametrize(
    "thing", [subjects.subject, subjects.as_dict, subjects.from_function, subjects]
)
def test_every_form_gives_the_same_pieces(thing: object) -> None:
    found = as_subject(thing)
    assert (
        isinstance(found, Subject) and found.model is subjects.model and found.loss is subjects.loss
    )


def test_a_subject_is_found_by_module_and_by_file() -> None:
    assert load_subject("subjects:as_dict").name == "subjects:as_dict"
    assert load_subject("subjects").data is subjects.data
    assert load_subject(f"{FILE}:subject").name == f"{FILE}:subject"


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("subjects:nope", "subjects has no 'nope'. It has:"),
        ("no_such_module:subject", "no module 'no_such_module'"),
        ("no_such_file.py:subject", "no file no_such_file.py"),
        ("subjects:incomplete", "subjects:incomplete has no loss and no optimizer. It needs model"),
    ],
)
def test_what_is_missing_is_told(spec: str, told: str) -> None:
    with pytest.raises(SubjectNotFound, match=told):
        load_subject(spec)


def test_a_module_that_fails_to_import_something_says_what(tmp_path: Path) -> None:
    (tmp_path / "needs_more.py").write_text("import not_installed_here\n", encoding="utf-8")
    with pytest.raises(SubjectNotFound, match="No module named 'not_installed_here'"):
        load_subject("needs_more:subject")


def test_batches_go_into_the_model_by_their_form() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
            return x * scale

    model, x, found = Model(), torch.ones(2), as_subject(subjects.as_dict)
    assert torch.equal(found.outputs(model, x), x)
    assert torch.equal(found.outputs(model, (x, "target")), x)
    assert torch.equal(found.outputs(model, (x, 3.0, "target")), 3 * x)
    assert torch.equal(found.outputs(model, {"x": x, "scale": 2.0, "labels": x}), 2 * x)


def test_grades_come_from_the_nearest_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.sawbones]\nsoft = ["loss.*"]\nskip = ["loop.memory-leak"]\n', encoding="utf-8"
    )
    (tmp_path / "deep" / "down").mkdir(parents=True)
    grades = project_grades(tmp_path / "deep" / "down")
    assert [(r.glob, r.grade, r.said_by) for r in grades.rules] == [
        ("loss.*", "soft", "pyproject.toml"),
        ("loop.memory-leak", "skip", "pyproject.toml"),
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[tool.sawbones]\nsofd = ["loss.*"]', "has no 'sofd'. Did you mean soft"),
        ('[tool.sawbones]\nsoft = "loss.*"', "a list of globs is expected"),
        ('[tool.sawbones]\nsoft = ["loss.duoble-softmax"]', "Nearest: loss.double-softmax"),
        ("[tool.sawbones\n", "can't be read"),
    ],
)
def test_settings_that_mean_nothing_are_refused(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SawbonesError, match=told):
        project_grades(tmp_path)


def test_data_that_is_used_up_is_made_again() -> None:
    from itertools import islice

    from sawbones.triage.recording import endless

    made: list[str] = []

    def generator() -> Iterator[int]:
        made.append("generator")
        yield from (1, 2)

    def loader() -> list[int]:
        made.append("loader")
        return [1, 2]

    assert (
        list(islice(endless(generator), 5)) == [1, 2, 1, 2, 1] == list(islice(endless(loader), 5))
    )
    assert made == ["generator"] * 3 + ["loader"]
    assert list(endless(list)) == []
