"""The functions of the public API: they check requests, run searches and simulations, and return results."""
