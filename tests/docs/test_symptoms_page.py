"""The pages of the symptoms are what the symptom files say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sawbones import symptoms
from sawbones.lookup import look_up
from sawbones.lookup.curves import CURVES
from sawbones.trials.menu import parse

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_pages_are_up_to_date() -> None:
    command = [sys.executable, str(DOCS / "generate_symptoms.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("watched", symptoms.all_symptoms(), ids=lambda watched: watched.symptom)
def test_a_symptom_is_in_the_index_and_has_a_page_with_its_causes(watched) -> None:
    index = (DOCS / "reference" / "symptoms" / "README.md").read_text(encoding="utf-8")
    assert f"[{watched.symptom}]({watched.symptom}.md)" in index
    page = (DOCS / "reference" / "symptoms" / f"{watched.symptom}.md").read_text(encoding="utf-8")
    for heading in ("What it may mean", "First commands", "Causes", "What it measures", "Null"):
        assert f"\n## {heading}" in page
    for trial in re.findall(r"sawbones try (\S+) train.py", page):
        assert parse(trial)
    for words in re.findall(r"`sawbones explain ([^`]+)`", page):
        assert look_up(words.strip('"'))
    if watched.symptom in CURVES:
        assert f"curves/{watched.symptom}.svg" in index and f"{watched.symptom}.svg" in page


def test_every_thumbnail_is_a_picture_with_a_curve() -> None:
    pictures = list((DOCS / "pictures" / "curves").glob("*.svg"))
    assert {picture.stem for picture in pictures} == set(CURVES)
    for picture in pictures:
        drawn = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
        assert len(drawn.findall("{http://www.w3.org/2000/svg}polyline")) >= 1
