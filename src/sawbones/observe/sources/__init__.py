"""Where data come from: the tables, arrays and lists that a script holds before it trains, line by
line, and which of their rows are trained on and evaluated. Under `diagnose` only.
"""
