"""Patients with a fault of the data layer, and their healthy twins: one script per fault."""
