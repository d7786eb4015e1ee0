"""Patients with a fault of the model layer, and their healthy twins: one script per fault."""
