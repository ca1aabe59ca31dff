"""Past logs: read them, fit problems to them."""

from banditune.logs.read import read_logs
from banditune.logs.record import Logs, logs_of

__all__ = ["Logs", "logs_of", "read_logs"]
