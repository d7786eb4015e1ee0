"""The lab: for every fault a small deterministic training script that is broken, or healthy by one
flag.

    python src/sawbones/faults/loss/double_softmax/lab.py             the broken one
    python src/sawbones/faults/loss/double_softmax/lab.py --healthy   its twin

The two differ by statements that mention `patient.broken`, and by nothing else, so the truth about
the line is read from the source. A script that needs several ranks says RANKS = 2 and is started
under torchrun. A file faults/<layer>/<fault>/lab.py is all there is to add. The lab sees the
reference trainer and knows nothing of the rest.
"""
