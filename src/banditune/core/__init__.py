"""Contracts, scalar functions, random numbers and checks on which all other packages build."""
