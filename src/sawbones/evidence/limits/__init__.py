"""Every number that a reading is compared with, one file per layer.

Each has a unit and a reason: a derivation (a null rate, an interval, the rounding of a dtype), or
the operating point, that is what healthy and broken runs were seen to show. Names say what is
limited, not how large it is. What each was compared with over lab and corpus is measured by
`python benchmarks/operating_points.py`.
"""

TINY = 1e-12  # keeps a ratio finite where the denominator is zero
