"""What goes wrong with bundles and their replays, each in one clear line."""

from __future__ import annotations

from sawbones.schema.errors import SawbonesError


class CaptureError(SawbonesError):
    """A bundle that cannot be read, written or replayed."""
