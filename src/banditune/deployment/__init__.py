"""A tuned policy in production: it selects arms, learns from rewards, and is saved as JSON."""

from banditune.core.lazy_names import attach_stub

__getattr__, __dir__ = attach_stub(__name__, __file__)
