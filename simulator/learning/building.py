"""Problems on the device, and what step sizes by theory ask of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp

from ..config.functions import UserFunction
from ..data import outputs
from ..data.base import Dataset
from ..data.losses import facts
from ..data.outputs import OutputForm
from ..keys import key_of
from ..models.base import Embedding
from ..models.mixed import mixed
from ..models.party import PartyNetwork, party_network
from . import convex, horizontal, losses, own_functions, transfer, vertical
from .caching import cached_by_content, dataset
from .constants import Constants
from .estimates import Estimates, estimate
from .shares import common_samples


@cached_by_content
def build(
    config: Any,
    precision: str,
    *,
    with_minimum: bool,
    bias: bool = True,
    compute_dtype: str | None = None,
) -> Any:
    """Builds a problem and puts it on the device, once for all runs that share it.

    Args:
        config: The problem's configuration, a `simulator.scenario.scenario.Problem`.
        precision: `float32` or `float64`.
        with_minimum: Whether the least value of the objective is computed.
        bias: Whether that objective's model has a bias.
        compute_dtype: Type in which networks compute; None for that of the weights.
    """
    data = dataset(config.data, precision)
    found = of_data(config, data, precision, with_minimum=with_minimum, bias=bias)
    return _mixed(config, found) if compute_dtype else found


@cached_by_content
def check_functions(
    config: Any,
    precision: str,
    metrics: tuple[str, ...],
    compute_dtype: str | None = None,
) -> None:
    """Refuses functions of a user's own that cannot be used, before anything is run.

    They are looked at with the first rows alone, which is quick.

    Args:
        config: The problem's configuration.
        precision: `float32` or `float64`.
        metrics: Names of the metrics that are evaluated.
        compute_dtype: As of `build`.

    Raises:
        ScenarioError: As `own_functions.check`.
    """
    if not own_functions.given(config, metrics):
        return
    few = _few(config, precision)
    if compute_dtype:
        few = _mixed(config, few)
    own_functions.check(config, few, metrics)


@cached_by_content
def coupling(config: Any, precision: str) -> UserFunction | None:
    """Returns what lets rows of a batch look at each other, if anything does.

    Args:
        config: The problem's configuration.
        precision: `float32` or `float64`.
    """
    if not own_functions.of_problem(config) or config.transfer is not None:
        return None
    return own_functions.coupling(config, _few(config, precision))


def _few(config: Any, precision: str) -> Any:
    """Returns the problem of the first rows alone."""
    data = own_functions.first_rows(dataset(config.data, precision))
    return of_data(config, data, precision, with_minimum=False, bias=True)


def of_data(
    config: Any, data: Dataset, precision: str, *, with_minimum: bool, bias: bool
) -> Any:
    """Builds the problem of some data, perhaps of their first rows alone.

    Args:
        config: As of `build`.
        data: Its data.
        precision: As of `build`.
        with_minimum: As of `build`.
        bias: As of `build`.
    """
    horizontal_ = config.partition.family == "horizontal"
    wanted = outputs.form(config, data)
    as_given = config.gives_rows
    of_problem = losses.of_form(wanted, as_given=as_given)
    least = float("nan")
    if with_minimum:
        least = _minimum(config, data, wanted, bias=bias)
    options = {
        "loss": of_problem,
        "reduction": config.reduction,
        "l2": config.l2,
        "minimum": least,
        "dtype": precision,
    }
    if not horizontal_:
        found = _vertical(config, data, wanted, options)
        if config.transfer is None:
            return found
        common = common_samples(config, len(data.x_train))
        alpha = jnp.asarray(config.transfer.alpha, precision)
        return transfer.TransferProblem(found, jnp.asarray(common), alpha)
    classifier = config.model.of_rows(data, wanted)
    clients = config.partition.num_clients
    return horizontal.build(data, classifier, clients, **options)


def _mixed(config: Any, problem: Any) -> Any:
    """Returns a problem whose networks compute in a shorter type than its weights."""
    model = config.model
    rows = not (model.takes_tokens or model.shaped)
    if isinstance(problem, transfer.TransferProblem):
        return replace(problem, vertical=_mixed(config, problem.vertical))
    if isinstance(problem, vertical.VerticalProblem):
        server = problem.server and mixed(problem.server, converts_rows=True)
        embedding = mixed(problem.embedding, converts_rows=rows)
        return replace(problem, embedding=embedding, server=server)
    return replace(problem, model=mixed(problem.model, converts_rows=rows))


def _minimum(
    config: Any, data: Dataset, wanted: outputs.OutputForm, *, bias: bool
) -> float:
    x, y = data.x_train, data.y_train
    if config.model.is_diagonal:
        return convex.diagonal(x, y, config.l2)[2]
    return convex.minimum(x, y, wanted.loss, wanted.num_outputs, config.l2, bias=bias)


def _vertical(
    config: Any, data: Dataset, form: OutputForm, options: dict[str, Any]
) -> vertical.VerticalProblem:
    """Builds a vertically divided problem, of logits or with a server's network."""
    model, chosen = config.model, config.server
    columns = config.partition.make(data)
    of_parties = embedding(config, form, [part.size for part in columns])
    if not isinstance(of_parties, PartyNetwork):
        return vertical.build(data, columns, of_parties, **options)
    server = chosen and chosen.network(len(columns), form)
    frames = model.frames if model.sequential else 1
    pieces = of_parties.views * frames
    return vertical.build(
        data, columns, of_parties, server=server, pieces=pieces, **options
    )


def embedding(config: Any, form: OutputForm, sizes: Sequence[int]) -> Embedding:
    """Builds the network of parties, of what they send to be added up or to a server.

    Args:
        config: The problem's configuration.
        form: Outputs that the loss takes.
        sizes: Columns of each party.

    Raises:
        ScenarioError: The columns do not fit the model.
    """
    model, chosen = config.model, config.server
    if chosen is None and "vertical" in model.families:
        family = "transfer" if config.transfer else "vertical"
        return model.make(form.num_outputs, max(sizes), family)
    return party_network(
        model,
        sizes,
        width=chosen.width if chosen else form.num_outputs,
        views=chosen.views if chosen else 1,
        last=chosen is not None,
    )


def constants(
    config: Any, precision: str, *, bias: bool, commits_per_epoch: float
) -> Constants:
    """Returns what is known of a convex objective; little of others.

    Args:
        config: The problem's configuration.
        precision: `float32` or `float64`.
        bias: Whether the model has a bias.
        commits_per_epoch: Commits of a pass over the data.
    """
    partition = config.partition
    data = dataset(config.data, precision)
    of_problem = outputs.loss(config, data)
    known = Constants(
        num_clients=partition.num_clients, commits_per_epoch=commits_per_epoch
    )
    if config.model.is_diagonal and of_problem == "squared":
        found = convex.diagonal(data.x_train, data.y_train, config.l2)
        return known._replace(smoothness=found[0], strong_convexity=found[1])
    if not config.is_linear or facts(of_problem).curvature is None:
        return known
    return known._replace(
        smoothness=lambda: _smoothness(config, precision, bias=bias),
        strong_convexity=config.l2 or None,
        of_parties=lambda: _smoothness_of_parties(config, precision),
    )


def with_estimates(
    known: Constants, config: Any, problem: Any, precision: str, seed: int
) -> Constants:
    """Returns constants together with those that are measured on the device.

    Args:
        known: Constants from the data alone.
        config: The problem's configuration.
        problem: The problem on the device.
        precision: `float32` or `float64`.
        seed: Seed of the run, whose initial model the measurements are at.
    """
    if config.partition.family != "horizontal":
        return known
    return known._replace(
        num_first_layer=problem.model.num_noised,
        estimates=lambda: _estimates(config, precision, seed),
    )


@cached_by_content
def _smoothness(config: Any, precision: str, *, bias: bool) -> float:
    """Returns L of a convex objective; an eigenvalue of its features."""
    data = dataset(config.data, precision)
    of_problem = outputs.loss(config, data)
    return convex.smoothness(data.x_train, of_problem, config.l2, bias=bias)


@cached_by_content
def _smoothness_of_parties(config: Any, precision: str) -> tuple[float, ...]:
    """Returns L_k of each party's block; nothing where there are no parties."""
    partition = config.partition
    if partition.family != "vertical":
        return ()
    data = dataset(config.data, precision)
    columns, of_problem = partition.make(data), outputs.loss(config, data)
    return convex.smoothness_of_parties(data.x_train, columns, of_problem, config.l2)


@cached_by_content
def _estimates(config: Any, precision: str, seed: int) -> Estimates:
    """Measures a horizontal problem's constants where a run of this seed starts.

    Raises:
        ScenarioError: Rows have no loss of their own.
    """
    coupled = coupling(config, precision)
    if coupled is not None:
        raise coupled.refused(
            f"must give each row a loss of its own where smoothness, sigma or "
            f"clip_bound are taken from the data, got {coupled}, by which rows look at "
            f"each other; give these numbers"
        )
    problem = build(config, precision, with_minimum=False)
    return estimate(problem, key_of(seed))
