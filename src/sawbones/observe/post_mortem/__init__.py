"""A traceback -> schema.Crash, once, when the script has died. Costs nothing before."""

from sawbones.observe.post_mortem.record import crash_record
from sawbones.observe.post_mortem.traced import with_traced_operands

__all__ = ["crash_record", "with_traced_operands"]
