"""The files of the how-to pages do what the pages say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
HOW_TO = DOCS / "how-to"


def _files(page: str) -> dict[str, str]:
    """Code blocks that begin with `# name.py`."""
    blocks = re.findall(
        r"```python\n# (\w+\.py)\n(.*?)```",
        (HOW_TO / page).read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    return dict(blocks)


def test_the_subject_and_the_tests_of_check_pass(tmp_path: Path) -> None:
    files = _files("check.md")
    assert set(files) == {"pipeline.py", "test_pipeline.py", "test_properties.py"}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    plugin = ("-p", "no:sawbones", "-p", "sawbones.integrations.pytest_plugin")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugin, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=200,
        cwd=tmp_path,
    )
    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_every_assertion_of_the_tables_exists_and_every_one_for_models_is_there() -> None:
    import sawbones.testing

    named = set(re.findall(r"`(assert_\w+)`", (HOW_TO / "check.md").read_text(encoding="utf-8")))
    assert named <= set(sawbones.testing.__all__)
    taking_models = {
        "assert_causal",
        "assert_overfits_one_batch",
        "assert_resumes_exactly",
        "assert_labels_in_range",
    }
    assert taking_models <= named


def test_the_code_of_pin_compiles() -> None:
    blocks = re.findall(
        r"```python\n(.*?)```", (HOW_TO / "pin.md").read_text(encoding="utf-8"), flags=re.DOTALL
    )
    assert len(blocks) == 2
    for block in blocks:
        compile(block, "pin.md", "exec")


def test_the_script_of_the_tutorial_fails_where_the_tutorial_says(tmp_path: Path) -> None:
    page = (DOCS / "tutorial" / "first-diagnosis.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert found is not None
    (tmp_path / "train.py").write_text(found[1], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "sawbones", "run", "--out", "run", "train.py"],
        capture_output=True,
        text=True,
        timeout=200,
        cwd=tmp_path,
    )
    assert done.stdout.split() == ["0", "nan", "1", "nan", "2", "nan"], done.stderr
    assert (
        "first at step 16" in done.stderr
        and (tmp_path / "run" / "bundles" / "step-000016.sawbones").is_file()
    )


def test_the_callbacks_of_trainers_are_where_the_page_says() -> None:
    import ast

    text = (HOW_TO / "trainers.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 3
    folder = DOCS.parent / "src"
    for block in blocks:
        (imported, use) = ast.parse(block).body
        assert isinstance(imported, ast.ImportFrom) and imported.module is not None
        source = (folder / imported.module.replace(".", "/")).with_suffix(".py")
        (name,) = (alias.name for alias in imported.names)
        assert f"class {name}(" in source.read_text(encoding="utf-8")
        assert f"{name}()" in ast.unparse(use), "two lines each"
