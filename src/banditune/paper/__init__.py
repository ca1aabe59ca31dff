"""The paper's experiments as data, and the comparison with its published numbers."""

from banditune.core.lazy_names import attach_stub

__getattr__, __dir__ = attach_stub(__name__, __file__)
