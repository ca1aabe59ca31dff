"""Which column of a table plays which part."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from banditune.core.errors import InvalidRequest

USUAL_NAMES = {
    "campaign": "campaign experiment test trial study campaign_id experiment_id test_id trial_id study_id "
    "campaign_name experiment_name test_name instance site",
    "arm": "arm action variant variation treatment item choice option ad headline creative banner arm_id action_id "
    "variant_id item_id arm_name variant_name group",
    "reward": "reward click clicked conversion converted outcome success y value revenue payoff",
    "pulls": "pulls impressions participants shown views plays n count visitors total",
    "successes": "successes clicks conversions wins events quitters positives responders",
    "propensity": "propensity pscore propensity_score action_prob probability prob",
}
"""Names by which the parts are often known, the likeliest first."""


FEATURE_NAME_PATTERN = re.compile(r"(x|f|feature|context|dim)[_ .]?\d+$")
"""Names of features, if nobody says otherwise: x1, feature_2 ..."""


MAX_NAMES_SHOWN, MAX_COLUMN_NAME_LENGTH = 20, 40
"""What a sentence holds of a header."""


@dataclass(frozen=True)
class ColumnRoles:
    """The columns that are read: a row is a decision with its `reward`, or an arm of a campaign: `pulls`, `successes`."""

    campaign: str
    arm: str
    reward: str | None = None
    pulls: str | None = None
    successes: str | None = None
    propensity: str | None = None
    features: tuple[str, ...] = ()

    @property
    def numbers(self) -> tuple[tuple[str, str], ...]:
        """Part and column of everything that holds numbers."""
        parts = ("reward", "pulls", "successes", "propensity")
        found = [(part, getattr(self, part)) for part in parts if getattr(self, part) is not None]
        return (*found, *((f"feature {name}", name) for name in self.features))

    @property
    def wanted(self) -> tuple[str, ...]:
        """All columns that are read."""
        return (self.campaign, self.arm, *(column for _, column in self.numbers))

    def __str__(self) -> str:
        parts = [
            ("campaign", self.campaign),
            ("arm", self.arm),
            *self.numbers[: len(self.numbers) - len(self.features)],
        ]
        told = ", ".join(f"{part} = {column!r}" for part, column in parts)
        return f"{told}, features = {', '.join(self.features)}" if self.features else told


def assign_columns(names: Sequence[str], told: Mapping[str, str | Sequence[str] | None]) -> ColumnRoles:
    """Columns by what the user told, else by their usual names."""
    for name in names:
        if names.count(name) > 1:
            raise InvalidRequest(f"columns must have different names, but two are called {name!r}; rename one.")
    found = {part: _match_column(part, told[part], names) for part in USUAL_NAMES if told.get(part) is not None}
    features = told.get("features")
    listed = () if features is None else tuple(features.split(",") if isinstance(features, str) else features)
    chosen = tuple(_match_column("features", name, names) for name in listed if str(name).strip())
    _check_distinct([*found.items(), *(("features", name) for name in chosen)])
    taken = {*found.values(), *chosen}
    for part in ("campaign", "arm"):
        if part not in found:
            found[part] = _guess_column(part, names, taken)
            taken.add(found[part])
    found |= _assign_reward_columns(names, found, taken)
    taken |= set(found.values())
    if "propensity" not in found:
        seen = _find_usual_column("propensity", names, taken)
        found |= {"propensity": seen} if seen else {}
    if features is None:
        chosen = tuple(name for name in names if FEATURE_NAME_PATTERN.match(name.strip().lower()) and name not in taken)
    return ColumnRoles(**found, features=chosen)


def _assign_reward_columns(names: Sequence[str], found: Mapping[str, str], taken: set[str]) -> dict[str, str]:
    """A reward for each decision, or pulls and successes of each arm."""
    if "reward" in found:
        if "pulls" in found or "successes" in found:
            raise InvalidRequest("a row is a decision with a reward, or an arm with pulls and successes, but got both.")
        return {}
    pulls = found.get("pulls") or _find_usual_column("pulls", names, taken)
    successes = found.get("successes") or _find_usual_column("successes", names, taken | ({pulls} if pulls else set()))
    if pulls and successes:
        return {"pulls": pulls, "successes": successes}
    if "pulls" in found or "successes" in found:
        other = "successes" if "pulls" in found else "pulls"
        raise InvalidRequest(
            f"pulls and successes belong together, but no column holds {other}; name it with {other}='COLUMN'."
        )
    seen = pulls or successes
    if seen and not _find_usual_column("reward", names, taken):
        part, other = ("pulls", "successes") if pulls else ("successes", "pulls")
        raise InvalidRequest(
            f"pulls and successes belong together, but beside {seen!r}, which looks like {part}, no column has a name that "
            f"says {other}; name it with {other}='COLUMN', or the reward of each decision with reward='COLUMN'."
        )
    reward = _guess_column("reward", names, taken)
    if pulls:
        raise InvalidRequest(
            f"a row must be one decision with its reward, but the column {pulls!r} says that rows are totals of several "
            f"pulls, of which only counts of successes can be read. Give a row for each decision; if {pulls!r} means "
            f"something else, name the reward with reward={reward!r}."
        )
    return {"reward": reward}


def _match_column(part: str, name: object, names: Sequence[str]) -> str:
    """A column that the user named."""
    word = str(name).strip()
    if word not in names:
        near = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise InvalidRequest(
            f"the column for {part} must be one of {_format_column_names(names)}, but got {word!r:.60}{hint}"
        )
    return word


def _check_distinct(told: Sequence[tuple[str, str]]) -> None:
    """Every column that the user named plays one part."""
    parts: dict[str, str] = {}
    for part, column in told:
        if column in parts:
            raise InvalidRequest(
                f"a column must be named once, but {column!r} was named by `{parts[column]}` and by `{part}`; name another "
                "by one of them, or leave it out there."
            )
        parts[column] = part


def _format_column_names(names: Sequence[str]) -> str:
    """Columns' names in a sentence: a header may hold any number of them, of any length."""
    short = [
        name if len(name) <= MAX_COLUMN_NAME_LENGTH else f"{name[:MAX_COLUMN_NAME_LENGTH]}..."
        for name in names[:MAX_NAMES_SHOWN]
    ]
    return ", ".join(short) + f" and {len(names) - MAX_NAMES_SHOWN:,} more" * (len(names) > MAX_NAMES_SHOWN)


def _find_usual_column(part: str, names: Sequence[str], taken: set[str]) -> str | None:
    """The column with the likeliest of a part's usual names."""
    plain = {name.strip().lower().replace(" ", "_").replace("-", "_"): name for name in reversed(names)}
    return next((plain[usual] for usual in USUAL_NAMES[part].split() if plain.get(usual) not in (None, *taken)), None)


def _guess_column(part: str, names: Sequence[str], taken: set[str]) -> str:
    found = _find_usual_column(part, names, taken)
    if found is None:
        alone = "; if all rows are of one campaign, add a column with its name" if part == "campaign" else ""
        raise InvalidRequest(
            f"a column must hold the {part}, but none of {_format_column_names([name for name in names if name not in taken])} has a name "
            "that says so; "
            f"name it with {part}='COLUMN'{alone}."
        )
    return found
