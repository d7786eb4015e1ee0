"""The pytest plugin: a fixture `sawbones` that runs the triage inside a test.

    def test_training(sawbones):
        sawbones.check(subject)

A hard finding fails the test with the report; a soft one is a warning. Nothing is imported until a
test asks for the fixture, so test runs that do not use it pay nothing. `--sawbones` records every
test that trains (watched_tests.py).
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sawbones.schema import Report
    from sawbones.triage import Triage


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("sawbones").addoption(
        "--sawbones",
        action="store_true",
        help="record every test that trains: what is wrong with it, and whether it is flaky by seed",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--sawbones"):
        from sawbones.integrations.watched_tests import WatchedTests

        config.pluginmanager.register(WatchedTests(), "sawbones-watched-tests")


class SawbonesWarning(UserWarning):
    """A soft finding: reported, not a failure."""


class Surgeon:
    """What a test gets under the name `sawbones`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def check(
        self,
        subject: Any,
        *,
        soft: tuple[str, ...] = (),
        hard: tuple[str, ...] = (),
        skip: tuple[str, ...] = (),
        **settings: Any,
    ) -> Triage:
        """The triage of a subject; grades of [tool.sawbones] in pyproject.toml hold, those given
        here come after them.

        Settings: layers, only, keep_going, steps, seed, as of sawbones.check.
        """
        __tracebackhide__ = True
        from sawbones.triage import check, project_grades

        grades = project_grades(self._root)
        for grade, globs in (("soft", soft), ("hard", hard), ("skip", skip)):
            grades = grades.with_rules(
                grade, (globs,) if isinstance(globs, str) else globs, f"{grade}="
            )
        triage = check(subject, grades=grades, **settings)
        for finding in triage.soft:
            where = f" at {finding.where[0]}" if finding.where else ""
            warnings.warn(SawbonesWarning(f"{finding.fault}: {finding.title}{where}"), stacklevel=2)
        if triage.report.verdict != "healthy":
            pytest.fail(report_text(triage.report), pytrace=False)
        return triage


def report_text(report: Report) -> str:
    from rich.console import Console

    from sawbones.report.terminal import render_terminal

    page = io.StringIO()
    render_terminal(report, Console(file=page, width=100, color_system=None))
    notes = "".join(f"\nnote: {note}" for note in report.notes if note not in page.getvalue())
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines()).strip("\n") + notes


@pytest.fixture  # type: ignore[untyped-decorator]
def sawbones(request: pytest.FixtureRequest) -> Surgeon:
    """check(subject): the ordered triage of model, data, loss and optimizer, as a test."""
    return Surgeon(request.path.parent)
