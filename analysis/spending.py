"""Privacy spent by clients, its meaning, and whether it was swept."""

import numpy as np
import pandas as pd

from ..simulator.privacy.parts import known
from .frames import Study, accounts, follow, joined, runs, swept_columns
from .targets import final_quantities


def spending(study: Study) -> pd.DataFrame:
    """Returns the privacy spent by each group's clients, where that is accounted for.

    Returns:
        By group: epsilon, the largest of a client and replicate, by the first
        accountant; proof, `formal`, `approx.` of a formal one, or `paper's` own
        accounting; protects, the protected unit, empty for older studies; and basis,
        accountant and delta as text.
    """
    columns = pd.Index(["epsilon", "proof", "protects", "basis"])
    told = accounts(study)
    if not told:
        return pd.DataFrame(columns=columns)
    table = joined(study, "privacy").dropna(subset="epsilon")
    first = table["run"].map({run: of["accountants"][0] for run, of in told.items()})
    last = table["time"] == table.groupby("run")["time"].transform("max")
    table = table[last & (table["accountant"] == first)]
    found = {}
    for group, mine in table.groupby("group", sort=False):
        of_runs = [told[run] for run in mine["run"].unique()]
        proof = "paper's"
        if all(entry.get("formal") for entry in of_runs):
            proof = "formal" if bool(mine["formal"].all()) else "approx."
        entry = of_runs[0]
        basis = f"{entry['accountants'][0]} at δ = {entry['delta']:g}"
        epsilon = float(mine["epsilon"].max())
        found[str(group)] = epsilon, proof, entry.get("protects", ""), basis
    return pd.DataFrame.from_dict(found, orient="index", columns=columns)


def conditional(study: Study) -> list[str]:
    """Returns a line on the largest epsilon of each accountant with a condition."""
    table = study.table("privacy") if accounts(study) else pd.DataFrame()
    found = []
    for part in known() if len(table) else ():
        mine = table[table["accountant"] == part.name]
        if part.condition and len(mine):
            proof = "proved" if mine["formal"].all() else "not proved"
            most = f"ε {mine['epsilon'].max():.4g} by {part.name} ({proof})"
            found.append(f"{most}: {part.condition}.")
    return found


def protected(study: Study, counted: str = "epsilon") -> str:
    """Returns the protected unit of a study's epsilons; "" where there are none.

    Of an older study, whose runs do not record it, the text is empty, too.
    """
    if counted != "epsilon":
        return ""
    by_words: dict[str, list[str]] = {}
    told = accounts(study)
    for run in study.manifest["runs"]:
        if words := told.get(run["run"], {}).get("protects"):
            by_words.setdefault(words, []).append(run["variant"])
    if len(by_words) < 2:
        return f"epsilon protects {next(iter(by_words))}" if by_words else ""
    each = (
        f"{words} ({', '.join(dict.fromkeys(variants))})"
        for words, variants in by_words.items()
    )
    return f"epsilon protects {' or '.join(each)}"


def swept(study: Study) -> tuple[str, list[str], str]:
    """Finds the swept key by which finite epsilons differ, if there is one.

    With the key that gives every point of a line a different epsilon, or "", come the
    swept keys that epsilon does not depend on, of which each has lines, and the reason
    against lines over epsilon; "" where there is none.

    Runs that a budget has ended have spent that budget, but for less than a message:
    such epsilons are the same.
    """
    columns = swept_columns(study)
    known = runs(study).drop_duplicates("group").set_index("group")
    table = known[["variant", *columns.values()]].join(_intended(study))
    table = table.dropna(subset="epsilon")
    moving: list[str] = []
    for key in columns:
        along = [key, *follow(study, key)]
        same = ["variant", *(c for other, c in columns.items() if other not in along)]
        each = table.groupby(same, dropna=False)["epsilon"].nunique()
        if (each > 1).any() and not {*along} & {*moving}:
            moving.append(key)
    tied = [other for key in moving for other in (key, *follow(study, key))]
    others = [
        key
        for key, column in columns.items()
        if key not in tied and len(table[column].drop_duplicates()) > 1
    ]
    if len(moving) > 1:
        return "", others, f"several swept keys change ε: {', '.join(moving)}"
    line = ["variant", *(columns[key] for key in others)]
    same_epsilon = table.duplicated([*line, "epsilon"])
    ended = (known.loc[table.index, "stop"] == "privacy").any() if len(table) else False
    why = "runs ended at one budget" if ended else "ε was not swept"
    if not moving or same_epsilon.any():
        return "", others, why
    return moving[0], others, ""


def _intended(study: Study) -> pd.Series:
    table = final_quantities(study, "epsilon").groupby("group")["value"].mean()
    budget: dict[str, float] = {}
    for group, mine in runs(study).groupby("group"):
        ended = [
            (run.get("privacy") or {}).get("budget", 0.0)
            for run in study.manifest["runs"]
            if run["run"] in set(mine["run"])
        ]
        if (mine["stop"] == "privacy").all() and len({*ended}) == 1:
            budget[str(group)] = ended[0] or 0.0
    found = pd.Series({**table.to_dict(), **budget}, name="epsilon", dtype=np.float64)
    return found[np.isfinite(found)]
