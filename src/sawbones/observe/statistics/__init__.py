"""Per-tensor statistics of gradients, parameters and updates, taken around every optimizer step."""
