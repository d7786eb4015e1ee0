"""Data sets -> Finding: leaks between splits, shifts between a reference and production,
tokenizers, and one data set by itself.

One file of leaks/, shift/, tokens/ or data/ is one audit and holds
    FAULT       the id of the finding (ALSO: further ids that it can give)
    look(case)  yields findings, or raises CannotLook with the reason
Where no check of a training run speaks for the fault, the docstring is its page of the catalogue.
Everything that touches rows goes through engine/ (Ibis: DuckDB or Spark), and comes back as
aggregates; statistics are made from those.
"""
