"""Stores: SQLite files that keep regrets, so that no run is simulated twice."""
