"""Executors: threads, processes, Dask and Ray."""
