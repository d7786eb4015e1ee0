"""Folders that are passed on and run without Sawbones: a script with all it needs, what it gave, and
the SHA-256 of every file.
"""
