"""Virtual fixes: one file each with install(recorder, **params). They act in the child process
only.
"""
