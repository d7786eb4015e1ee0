"""As many positions in the table as the longest sequence has."""

from __future__ import annotations

from sawbones.fixing.crashes import larger_table as fix

__all__ = ["fix"]
