"""Patients with a fault of the evaluation layer, and their healthy twins: one script per fault."""
