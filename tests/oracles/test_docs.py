"""The generated optimizer page is up to date, and the derivation's code runs."""

import re
import subprocess
import sys
from pathlib import Path

from sawbones.oracles.optimizers import OPTIMIZERS

DOCS = Path(__file__).parents[2] / "docs"


def check_page(page):
    command = [sys.executable, str(DOCS / "generate_optimizers.py"), "--check", "--page", str(page)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_optimizer_page_is_what_the_code_says():
    result = check_page(DOCS / "reference" / "optimizers.md")
    assert result.returncode == 0, result.stderr
    text = (DOCS / "reference" / "optimizers.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| **")]
    assert len(rows) == len(OPTIMIZERS) == 7
    # An unescaped | inside a cell would shift every column after it.
    assert all(row.count("|") == 7 for row in rows)


def test_optimizer_page_check_sees_an_outdated_and_a_missing_page(tmp_path):
    text = (DOCS / "reference" / "optimizers.md").read_text(encoding="utf-8")
    page = tmp_path / "optimizers.md"
    page.write_text(text.replace("`lr=0.001`", "`lr=0.002`", 1), encoding="utf-8")
    assert page.read_text(encoding="utf-8") != text
    for path in (page, tmp_path / "absent.md"):
        result = check_page(path)
        assert result.returncode == 1
        assert "Write it anew: python docs/generate_optimizers.py" in result.stderr


def test_code_in_the_derivation_runs():
    text = (DOCS / "explanation" / "derivations.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "derivations.md", "exec"), names)
