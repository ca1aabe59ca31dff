"""Deployed policies: they select arms in production, are updated for rewards, and are saved as JSON."""

from banditune.core.lazy_names import attach_stub

__getattr__, __dir__ = attach_stub(__name__, __file__)
