"""Patients with a fault of the loss layer, and their healthy twins: one script per fault."""
