"""Past logs: read them, fit problems to them."""

from banditune.logs.record import Logs, logs_of

__all__ = ["Logs", "logs_of"]
