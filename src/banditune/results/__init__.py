"""Results of studies: frozen records that are written to JSON and read back without loss."""

from banditune.core.lazy_names import attach_stub

__getattr__, __dir__ = attach_stub(__name__, __file__)
