"""As many rows in the table as the largest id needs."""

from __future__ import annotations

from sawbones.fixing.crashes import larger_table as fix

__all__ = ["fix"]
