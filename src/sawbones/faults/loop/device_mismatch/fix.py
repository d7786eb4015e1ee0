"""The change that the line which died asks for."""

from __future__ import annotations

from sawbones.fixing.crashes import written_change as fix

__all__ = ["fix"]
