"""Patients with a fault of the pipeline layer, and their healthy twins: one script per fault."""
