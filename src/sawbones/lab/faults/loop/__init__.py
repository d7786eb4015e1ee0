"""Patients with a fault of the loop layer, and their healthy twins: one script per fault."""
