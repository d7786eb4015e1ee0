"""A training that runs already and was never watched: its stacks, read from outside, and who waits
for whom.
"""

from sawbones.attach.processes import Process, python_processes
from sawbones.attach.stacks import CannotRead, Stack, read_stack
from sawbones.attach.waiting import Conclusion, Rank, conclude, look_at

__all__ = [
    "CannotRead",
    "Conclusion",
    "Process",
    "Rank",
    "Stack",
    "conclude",
    "look_at",
    "python_processes",
    "read_stack",
]
