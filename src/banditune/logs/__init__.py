"""Past logs: their records, their readers, and the models that are fitted to them."""

from banditune.core.lazy_names import attach_stub

__getattr__, __dir__ = attach_stub(__name__, __file__)
