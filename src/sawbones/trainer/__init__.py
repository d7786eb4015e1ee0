"""The reference pipeline: a small Transformer trained correctly in every detail. It imports nothing
else of Sawbones.

Empty on purpose: `sawbones.trainer.config` loads without torch, so that the command line can print
its help at once.
"""
