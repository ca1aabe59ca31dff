"""Exact shortcuts: faster ways to simulate policies, with the same distribution of regrets."""
