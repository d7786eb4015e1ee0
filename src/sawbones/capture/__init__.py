"""A failing step becomes a file: freeze it, replay it, shrink it."""
