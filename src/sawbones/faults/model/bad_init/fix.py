"""torch's own initialisation: the statement that overwrites it goes."""

from __future__ import annotations

from sawbones.fixing.initialising import own_initialisation as fix

__all__ = ["fix"]
