"""Simulation: the plain loop, its compilation, exact shortcuts, GPU versions, and executors."""
