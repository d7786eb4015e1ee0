"""The processor time of a process."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CpuTime:
    """Seconds, over all threads."""

    ran: float = 0.0
    waited: float = 0.0  # ready to run while other work had the cores

    @property
    def waiting_share(self) -> float:
        """Of the time in which there was something to compute."""
        wanted = self.ran + self.waited
        return self.waited / wanted if wanted else 0.0
