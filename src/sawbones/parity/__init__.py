"""Whether what serves answers as what was trained: two callables on the same golden rows, step by
step, and where they part.
"""

from sawbones.parity.engine import compare

__all__ = ["compare"]
