"""torch -> Run: everything that touches the host process."""
