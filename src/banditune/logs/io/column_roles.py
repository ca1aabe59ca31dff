"""Assigns roles to the columns of a table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument, Message, Setting
from banditune.core.request_errors import suggest_name

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
"""Usual names of columns for each role, the most likely first."""


FEATURE_NAME_PATTERN = re.compile(r"(x|f|feature|context|dim)[_ .]?\d+$")
"""Usual names of feature columns: x1, feature_2 ..."""


MAX_NAMES_SHOWN, MAX_COLUMN_NAME_LENGTH = 20, 40
"""The largest number of column names in a message, and of characters in each."""


@dataclass(frozen=True)
class ColumnRoles:
    """The columns that are read. A row is a decision with `reward`, or an arm of a campaign with `pulls`, `successes`."""

    campaign: str
    arm: str
    reward: str | None = None
    pulls: str | None = None
    successes: str | None = None
    propensity: str | None = None
    features: tuple[str, ...] = ()

    @property
    def number_columns(self) -> tuple[tuple[str, str], ...]:
        """Roles and names of the columns that hold numbers."""
        parts = ("reward", "pulls", "successes", "propensity")
        assigned = [(part, getattr(self, part)) for part in parts if getattr(self, part) is not None]
        return (*assigned, *((f"feature {name}", name) for name in self.features))

    @property
    def all_columns(self) -> tuple[str, ...]:
        """The names of all columns that are read."""
        return (self.campaign, self.arm, *(column for _, column in self.number_columns))

    def __str__(self) -> str:
        parts = [
            ("campaign", self.campaign),
            ("arm", self.arm),
            *self.number_columns[: len(self.number_columns) - len(self.features)],
        ]
        columns = ", ".join(f"{part} = {column!r}" for part, column in parts)
        return f"{columns}, features = {', '.join(self.features)}" if self.features else columns


def assign_columns(names: Sequence[str], requested: Mapping[str, str | Sequence[str] | None]) -> ColumnRoles:
    """Assign columns as the user requested, else by their usual names."""
    for name in names:
        if names.count(name) > 1:
            raise InvalidRequest(
                f"columns must have different names, but two are called {name!r}; rename one.", code="bad-data"
            )
    roles = {
        part: _match_column(part, requested[part], names) for part in USUAL_NAMES if requested.get(part) is not None
    }
    requested_features = requested.get("features")
    listed = requested_features.split(",") if isinstance(requested_features, str) else requested_features or ()
    features = tuple(_match_column("features", name, names) for name in listed if str(name).strip())
    _check_distinct([*roles.items(), *(("features", name) for name in features)])
    used_columns = {*roles.values(), *features}
    for part in ("campaign", "arm"):
        if part not in roles:
            roles[part] = _guess_column(part, names, used_columns)
            used_columns.add(roles[part])
    roles |= _assign_reward_columns(names, roles, used_columns)
    used_columns |= set(roles.values())
    if "propensity" not in roles:
        propensity = _find_usual_column("propensity", names, used_columns)
        roles |= {"propensity": propensity} if propensity else {}
    if requested_features is None:
        features = tuple(
            name for name in names if FEATURE_NAME_PATTERN.match(name.strip().lower()) and name not in used_columns
        )
    return ColumnRoles(**roles, features=features)


def _assign_reward_columns(names: Sequence[str], roles: Mapping[str, str], used_columns: set[str]) -> dict[str, str]:
    """Find the columns of a reward for each decision, or of pulls and successes of each arm."""
    if "reward" in roles:
        if "pulls" in roles or "successes" in roles:
            raise InvalidRequest(
                "a row is a decision with a reward, or an arm with pulls and successes, but got both.",
                argument="reward",
                code="conflict",
            )
        return {}
    pulls = roles.get("pulls") or _find_usual_column("pulls", names, used_columns)
    successes = roles.get("successes") or _find_usual_column(
        "successes", names, used_columns | ({pulls} if pulls else set())
    )
    if pulls and successes:
        return {"pulls": pulls, "successes": successes}
    if "pulls" in roles or "successes" in roles:
        missing_role = "successes" if "pulls" in roles else "pulls"
        text = "pulls and successes must be given together, but no column has the {}; name it with {}."
        raise InvalidRequest(text, missing_role, Setting(missing_role, "COLUMN"), argument=missing_role, code="missing")
    column = pulls or successes
    if column and not _find_usual_column("reward", names, used_columns):
        part, missing_role = ("pulls", "successes") if pulls else ("successes", "pulls")
        raise InvalidRequest(
            "pulls and successes must be given together. The column {!r} has a usual name for {}, but no column has one "
            "for {}; name it with {}, or the reward of each decision with {}.",
            *(column, part, missing_role, Setting(missing_role, "COLUMN"), Setting("reward", "COLUMN")),
            argument=missing_role,
            code="missing",
        )
    reward = _guess_column("reward", names, used_columns)
    if pulls:
        raise InvalidRequest(
            "a row must be one decision with its reward, but by the column {!r} rows are totals of several pulls. Totals "
            "can be read only as counts of successes. Give a row for each decision; if {!r} has another meaning, name the "
            "reward with {}.",
            *(pulls, pulls, Setting("reward", reward)),
            argument="reward",
            code="bad-data",
        )
    return {"reward": reward}


def _match_column(part: str, name: object, names: Sequence[str]) -> str:
    """Find a column that the user named."""
    word = str(name).strip()
    if word not in names:
        hint = suggest_name(word, names, cutoff=0.5)
        text = f"the column for {part} must be one of {_format_column_names(names)}, but got {word!r:.60}{hint}"
        raise InvalidRequest(text, argument=part, code="unknown-name")
    return word


def _check_distinct(columns: Sequence[tuple[str, str]]) -> None:
    """Check that the user gave every column one role only."""
    parts: dict[str, str] = {}
    for part, column in columns:
        if column in parts:
            raise InvalidRequest(
                "a column must have one role, but {!r} was given as {} and as {}; give another column, or leave one of "
                "them out.",
                *(column, Argument(parts[column]), Argument(part)),
                argument=part,
                code="conflict",
            )
        parts[column] = part


def _format_column_names(names: Sequence[str]) -> str:
    """Write names of columns in a message. Long names and long lists are cut."""
    short = [
        name if len(name) <= MAX_COLUMN_NAME_LENGTH else f"{name[:MAX_COLUMN_NAME_LENGTH]}..."
        for name in names[:MAX_NAMES_SHOWN]
    ]
    return ", ".join(short) + f" and {len(names) - MAX_NAMES_SHOWN:,} more" * (len(names) > MAX_NAMES_SHOWN)


def _find_usual_column(part: str, names: Sequence[str], used_columns: set[str]) -> str | None:
    """Find the column with the most likely usual name of a role."""
    plain = {name.strip().lower().replace(" ", "_").replace("-", "_"): name for name in reversed(names)}
    return next(
        (
            plain[usual_name]
            for usual_name in USUAL_NAMES[part].split()
            if plain.get(usual_name) not in (None, *used_columns)
        ),
        None,
    )


def _guess_column(part: str, names: Sequence[str], used_columns: set[str]) -> str:
    column = _find_usual_column(part, names, used_columns)
    if column is None:
        alone = "; if all rows are of one campaign, add a column with its name" if part == "campaign" else ""
        free = _format_column_names([name for name in names if name not in used_columns])
        text = "a column must contain the {}, but none of {} has a usual name for it; name the column with {}{}{}."
        sums: Any = ""
        if part == "reward":
            sums = Message(
                "; if a row has counts, name both columns with {} and {}",
                *(Setting("pulls", "COLUMN"), Setting("successes", "COLUMN")),
            )
        raise InvalidRequest(text, part, free, Setting(part, "COLUMN"), sums, alone, argument=part, code="missing")
    return column
