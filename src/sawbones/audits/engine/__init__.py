"""Rows -> aggregates, through Ibis: the same expressions on embedded DuckDB and on Spark.
Statistics are made from what comes back.
"""
