"""Find how much a bandit policy should explore: `import banditune as bt`, then `bt.tune(...)`.

Names load when they are first used, so that the import costs next to nothing.
"""

from banditune.core.lazy_names import attach_stub
from banditune.core.version import __version__ as __version__

__getattr__, __dir__ = attach_stub(__name__, __file__)
