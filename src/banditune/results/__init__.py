"""What the verbs return: frozen records that go to JSON and back without loss."""

from banditune.core.lazy_names import attach_stub

__getattr__, __dir__ = attach_stub(__name__, __file__)
