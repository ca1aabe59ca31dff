"""Other people's policies: objects that select and update, tuned as they are; and tuned values for other libraries."""

from banditune.guests.export import exported
from banditune.guests.policy import Foreign, foreign

__all__ = ["Foreign", "exported", "foreign"]
