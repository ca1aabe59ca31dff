"""The paper's experiments as data, and the check against its published numbers."""

from banditune.paper.study import reproduce

__all__ = ["reproduce"]
