"""The page of the symptoms is what the symptom files say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from sawbones import symptoms

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_is_up_to_date() -> None:
    command = [sys.executable, str(DOCS / "generate_symptoms.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_every_symptom_has_its_paragraph_and_every_thumbnail_is_a_picture() -> None:
    text = (DOCS / "reference" / "symptoms.md").read_text(encoding="utf-8")
    for watched in symptoms.all_symptoms():
        assert f"\n### {watched.symptom}\n" in text
    pictures = [line for line in text.splitlines() if line.startswith("<svg")]
    assert len(pictures) > 8
    for picture in pictures:
        assert len(list(ElementTree.fromstring(picture))) >= 1
