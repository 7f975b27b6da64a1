"""The document of formulas in numbers: `evidence/pages/tables.md`."""

import pandas as pd

from stalesim.simulator.catalogue.protocols.rounds import Rounds

from . import adp2sgd, mapa, vafl


def document(note: str) -> str:
    """Returns the document.

    Args:
        note: note below the title.
    """
    return (
        f"# Tables of the formulas\n\n{note}\n"
        f"## Noise multipliers of Theorem 6 (V-18)\n\n{markdown(vafl.gdp_table())}\n\n"
        f"## Smoothing constants of Theorem 5\n\n{markdown(vafl.smoothing_table())}\n\n"
        f"## Block updates per second (section 5.4)\n\n"
        f"{markdown(vafl.throughput_table())}\n\n"
        f"## Table II of MAPA: step sizes\n\n"
        "K = 5, b = 12, sigma = 30, L = 10, R = 1, epsilon = 0.1, delta = 0.001,\n"
        "theta = 0.5, a gap of ln 2; AUDP and MAPA from the sensitivity of eq. 12.\n\n"
        f"{markdown(mapa.step_table())}\n\n"
        f"## Stages of MAPA\n\n"
        "The same constants; `simulated_step` and `iterations` are the simulator's.\n\n"
        f"{markdown(mapa.stage_table())}\n\n"
        f"## The three noise laws (M-01)\n\n"
        "At scale 1: a claimed epsilon of 1 and a shift as long as the sensitivity.\n\n"
        f"{markdown(mapa.noise_table())}\n\n"
        f"## Messages of FedBCD, by the number of parties (section 3)\n\n"
        f"{markdown(messages())}\n\n{of_adp2sgd()}"
    )


def of_adp2sgd() -> str:
    """Returns the tables of A(DP)2SGD: T2, R1 and G1 of the experiments, and timing."""
    return (
        "## Theorem 2 of A(DP)2SGD: the least noise, and what it is worth\n\n"
        "K = 16, n = 3125, B = 256, T = 58 593, delta = 1e-5, G = 1; mu = 0.5 where\n"
        "none is admissible (A-06). The last four columns are epsilon of the same\n"
        "noise by RDP: batches without replacement (one sample replaced) or Poisson\n"
        "(one more or less), as published or of a worker's own 3663 steps, for which\n"
        f"alone it is proved (A-05).\n\n{markdown(adp2sgd.noise_table())}\n\n"
        "## Theorem 2 of A(DP)2SGD against who sees whose turn it is\n\n"
        "The same setting and noise. Two data sets differ in one sample of a worker:\n"
        "who knows this worker's messages tells them apart with an epsilon of at\n"
        "least `seen`, above the promise. Were whose turn it is a secret draw, with\n"
        f"`secret` at most (A-05).\n\n{markdown(adp2sgd.observer_table())}\n\n"
        "## Epsilon of noise on the summed gradient of A(DP)2SGD\n\n"
        "`attained` is the specification's numeric value and no bound; `uniform` and\n"
        f"`poisson` are bounds where the accounting is own.\n\n"
        f"{markdown(adp2sgd.epsilon_table())}\n\n"
        "## Remark 1 of A(DP)2SGD: epsilon 10, mu 0.5\n\n"
        "`achieved` obeys Lemma 2's conditions; `unconstrained` leaves them out.\n\n"
        f"{markdown(adp2sgd.remark_table())}\n\n"
        "## Spectral quantities of pairwise averaging, K = 16\n\n"
        f"{markdown(adp2sgd.pairing_table())}\n\n"
        "## Time of SYNC over ADPSGD with slow workers, K = 16\n\n"
        f"{markdown(adp2sgd.slow_table())}\n\n"
        "## Table 2 of A(DP)2SGD, per mini-batch\n\n"
        f"{markdown(adp2sgd.model_table())}\n"
    )


def messages() -> pd.DataFrame:
    """Returns how many messages exchanges and rounds have, by the number of parties."""
    star, pairs = Rounds(), Rounds(exchange="pairwise")
    turns = Rounds(order="sequential")
    rows = [
        (
            parties,
            star.messages_per_exchange(parties),
            pairs.messages_per_exchange(parties),
            sum(turns.messages_per_round(parties)),
        )
        for parties in (2, 5, 17)
    ]
    columns = ["parties", "star", "pairwise", "star, a round of FedBCD-s (F-02)"]
    return pd.DataFrame(rows, columns=columns)


def markdown(frame: pd.DataFrame) -> str:
    """Returns a frame as a table."""
    head = [str(column) for column in frame.columns]
    lines = [head, ["---"] * len(head)]
    for row in frame.itertuples(index=False):
        cells = (f"{v:.4g}" if isinstance(v, float) else str(v) for v in row)
        lines.append([cell.replace("|", "/") for cell in cells])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
