"""Where simulations run: threads, processes, a Dask cluster or a Ray cluster."""

from banditune.core.lazy_names import attach_stub

__getattr__, __dir__ = attach_stub(__name__, __file__)
