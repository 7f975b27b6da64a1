"""Checks a run before anything is executed. JAX only for functions of a user's own."""

from ..parts.errors import ScenarioError
from ..problem.capabilities import DividesRows, HasStages, NoisyMessages, SumsOutputs
from ..problem.constants import Constants
from ..scenario.scenario import Scenario, check_amounts
from ..scenario.study import Run
from ..world.answers import OF_CLIENTS, AnswerLog
from .of_run import set_up
from .optimizers.part import check_options, chosen
from .setup import RunSetup
from .step_rules import StepRule, resolve


def constants(setup: RunSetup) -> Constants:
    """Returns the known and the measurable facts of a run's objective."""
    return setup.learning.numerics.constants(
        bias=not isinstance(setup.scenario.algorithm, SumsOutputs),
        commits_per_epoch=setup.timeline.commits_per_epoch,
        seed=setup.run.seed,
    )


def check(run: Run) -> None:
    """Checks a run before anything is executed.

    Raises:
        ScenarioError: The parts of the scenario do not fit each other or the data.
        DataError: A data file is missing or damaged.
        UserError: This process compiles double precision wrongly.
    """
    scenario = run.scenario
    doubles = scenario.engine.precision == "float64"
    if doubles:
        from . import compiler

        compiler.check("float64")
    setup = set_up(run)
    check_amounts(scenario, setup.timeline.workload.samples, setup.timeline.width)
    _ = setup.guarantees, setup.ledger()
    rule = scenario.algorithm.step_size
    if isinstance(rule, StepRule):  # numbers need no constants
        resolve(rule, constants(setup))
    for key, given in chosen(scenario.algorithm).items():
        check_options(given, f"algorithm.{key}")
    if scenario.problem.has_own(scenario.evaluate.metrics):
        import jax

        with jax.enable_x64(doubles):
            setup.learning.numerics.check_functions(scenario.evaluate.metrics)
            refuse_coupled_rows(setup)
    refuse_waves(scenario)
    if setup.timeline.answer_log is not None:
        refuse_feedback(setup, setup.timeline.answer_log)


def refuse_waves(scenario: Scenario) -> None:
    """Refuses waves of an algorithm whose rows are not divided."""
    divides = isinstance(scenario.algorithm, DividesRows)
    if scenario.engine.mode == "waves" and not divides:
        raise ScenarioError(
            "engine.mode must be auto, compiled or stepwise for the algorithm "
            f"{scenario.algorithm.kind!r}, whose rows are executed whole, got 'waves'; "
            "take auto"
        )


def refuse_feedback(setup: RunSetup, log: AnswerLog) -> None:
    """Refuses questions that the numerics do not answer."""
    scenario = setup.scenario
    of_clients = [each for each in log.asks if each in OF_CLIENTS]
    if of_clients and not isinstance(scenario.algorithm, HasStages):
        raise ScenarioError(
            f"{log.why} asks for {of_clients[0]}, which the algorithm "
            f"{scenario.algorithm.kind!r} does not report; take sgd, fed_avg, "
            "fed_async, fed_buff or a chain"
        )
    known = scenario.evaluate.metrics
    for who, part in scenario.listeners.items():
        if lacking := [name for name in part.needed_metrics if name not in known]:
            raise ScenarioError(
                f"evaluate.metrics must have {lacking[0]}, which {who} asks for, got "
                f"{', '.join(known)}; add it"
            )
    if scenario.engine.mode in ("waves", "batched"):
        raise ScenarioError(
            "engine.mode must be auto, compiled or stepwise if the world depends on "
            f"training, as with {log.why}, got {scenario.engine.mode!r}; take auto"
        )


def refuse_coupled_rows(setup: RunSetup) -> None:
    """Refuses rows that look at each other where they must stand for themselves."""
    algorithm = setup.scenario.algorithm
    if setup.sampler.own_steps is not None:
        where = (
            "batches are filled up (local_epochs, speeds, or clients with fewer "
            "samples than a batch)"
        )
        remedy = "give all local_steps and a smaller batch"
    elif isinstance(algorithm, NoisyMessages) and algorithm.clips_samples:
        where, remedy = "each sample's gradient is clipped", "clip the message"
    else:
        return
    coupled = setup.learning.numerics.coupling
    if coupled is not None:
        raise coupled.refused(
            f"must give each row a loss of its own where {where}, got {coupled}, "
            f"which makes the rows of a batch depend on each other; {remedy}"
        )
