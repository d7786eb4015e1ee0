"""Sawbones: a debugger for PyTorch training runs.

Nothing heavy is imported until it is used: `import sawbones` alone does not import torch.

PYTEST_DONT_REWRITE: under `sawbones run -m pytest` this is imported before pytest could rewrite it,
and pytest would warn of that.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "Finding",
    "Report",
    "Run",
    "SawbonesError",
    "Subject",
    "__version__",
    "audit",
    "check",
    "diagnose",
    "explain",
    "read_run",
    "watch",
]

_HOMES = {
    "Finding": "sawbones.schema",
    "Report": "sawbones.schema",
    "Run": "sawbones.schema",
    "SawbonesError": "sawbones.schema.errors",
    "Subject": "sawbones.triage",
    "check": "sawbones.triage",
    "diagnose": "sawbones.fixing",
    "explain": "sawbones.pages",
    "load_ipython_extension": "sawbones.integrations.notebook",  # %load_ext sawbones
    "read_run": "sawbones.store",
    "watch": "sawbones.watching",
}

if TYPE_CHECKING:
    from sawbones import audit
    from sawbones.fixing import diagnose
    from sawbones.pages import explain
    from sawbones.schema import Finding, Report, Run
    from sawbones.schema.errors import SawbonesError
    from sawbones.store import read_run
    from sawbones.triage import Subject, check
    from sawbones.watching import watch


def __getattr__(name: str) -> Any:
    if name == "audit":
        return importlib.import_module("sawbones.audit")
    if name not in _HOMES:
        raise AttributeError(
            f"sawbones has no {name!r}. Public names: {', '.join(sorted(__all__))}"
        )
    return getattr(importlib.import_module(_HOMES[name]), name)
