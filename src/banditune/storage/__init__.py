"""Stores: SQLite files that keep regrets, so that nothing is simulated twice."""
