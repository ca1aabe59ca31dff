"""Past logs: read them, fit problems to them."""

from banditune.logs.backtest import backtest
from banditune.logs.fit import fit
from banditune.logs.prior import Prior, read_prior, write_prior
from banditune.logs.read import read_logs
from banditune.logs.record import Logs, logs_of

__all__ = ["Logs", "Prior", "backtest", "fit", "logs_of", "read_logs", "read_prior", "write_prior"]
