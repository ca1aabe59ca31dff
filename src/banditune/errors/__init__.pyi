from banditune.core.errors import InvalidRequest as InvalidRequest
from banditune.core.errors import SimulationError as SimulationError
from banditune.core.errors import WorkerLost as WorkerLost
