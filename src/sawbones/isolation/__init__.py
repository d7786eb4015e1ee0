"""How a script is kept away from the user's files and services while Sawbones runs it.

Two modes. *Kernel*: the child process gets a file system, a network and shared memory of its own
(namespaces and overlays of Linux): `layers` plans it, `enter` makes it, `linux` holds the system
calls. *Patched*, where that is refused: the calls of Python that write, start processes or connect
are replaced (`redirects`, `native_writes`, `processes`, `connections`) and the script works in a
copy. Behind them the kernel refuses what compiled code does: `landlock` writes, and the rare calls
of `syscalls` by a supervisor (`seccomp`, `supervised`, `supervising`, `calls`, `rulings`, `reach`).
`unguarded` lists what some machines cannot hold back and needs `--allow native`. `choosing` picks the mode, `scratch`
keeps the folders, `held_back` writes down what was not allowed.
"""
