"""Exact shortcuts: faster ways to simulate policies, with the same law of regrets."""
