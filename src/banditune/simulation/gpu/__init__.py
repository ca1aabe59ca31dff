"""Simulation on an NVIDIA GPU: kernels, launch plans, memory, and policies that run on a warp."""
