"""`sawbones.audit.leaks(train, test, ...)`, `shift`, `tokens` and `data`: the audits of data sets,
from Python.

Each gives a Report: `report.verdict`, `report.findings`. Needs the extra `audit`: pip install
"sawbones[audit]".
"""

from sawbones.audits.api import data, leaks, shift, tokens
from sawbones.audits.options import AuditError, Thresholds

__all__ = ["AuditError", "Thresholds", "data", "leaks", "shift", "tokens"]
