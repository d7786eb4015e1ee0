"""The live page: recorded runs, also while they go on, in a browser on this machine.

following  the steps of a run folder as arrays that grow
view       Run -> what the page shows beside its curves: findings, and the sections of
           layers, data and ranks, made of blocks
hub        one thread that reads, and what each client has not seen yet
server     127.0.0.1 only, a token in the link, server-sent events
document   the page itself
"""
