"""How production differs from the reference, and of which kind the difference is."""
