"""Past logs: read them, fit problems to them."""

from banditune.logs.fit import fit
from banditune.logs.record import Logs, logs_of

__all__ = ["Logs", "fit", "logs_of"]
