"""Patients with a fault of the optimizer layer, and their healthy twins: one script per fault."""
