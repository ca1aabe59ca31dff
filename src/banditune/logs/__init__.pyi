from banditune.logs.campaign_logs import Logs as Logs
from banditune.logs.campaign_logs import make_logs as make_logs
from banditune.logs.io.log_reader import read_logs as read_logs
from banditune.logs.models.fitting import fit as fit
