"""Stores: SQLite files with regrets, so that no run is simulated twice."""
