"""Settings of the user's project: `[tool.sawbones]` of the nearest pyproject.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sawbones.schema.errors import SawbonesError


class ProjectNotReadable(SawbonesError):
    """A pyproject.toml that is no TOML, or says something that we cannot take."""


@dataclass(frozen=True, slots=True)
class Project:
    file: Path | None = None  # None: there is no pyproject.toml above
    settings: Mapping[str, Any] = field(default_factory=dict)  # the table [tool.sawbones]

    def table(self, name: str) -> dict[str, Any]:
        found = self.settings.get(name, {})
        return dict(found) if isinstance(found, dict) else {}


def nearest_project(start: Path) -> Project:
    """Of the folder `start`, or of the first one above it that holds a pyproject.toml."""
    here = start.resolve()
    for folder in (here, *here.parents):
        file = folder / "pyproject.toml"
        if not file.is_file():
            continue
        try:
            found = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ProjectNotReadable(f"{file} cannot be read: {error}") from error
        tools = found.get("tool", {})
        settings = tools.get("sawbones", {}) if isinstance(tools, dict) else {}
        return Project(file, settings if isinstance(settings, dict) else {})
    return Project()
