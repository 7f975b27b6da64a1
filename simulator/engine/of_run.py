"""From a run of a study to its timeline and its other facts. No JAX in here.

The sizes of messages follow from the algorithm's configuration and the counts of the
data, so that a world is simulated without training. The order: the problem divides its
data, the algorithm defines a job, privacy limits the messages, and a protocol and a
world make the timeline.
"""

import hashlib
import json
from dataclasses import replace
from math import nan

from ..files import inputs
from ..files.job_steps import JobSteps
from ..parts.base import tag
from ..parts.errors import ScenarioError
from ..privacy import ledger
from ..privacy.releases import Calibrated
from ..problem.capabilities import HasStages, NoisyMessages, StoresEmbeddings
from ..problem.learning import Learning, Shares, learning, shares
from ..problem.models.parts import ModelCounts, ProblemShape
from ..problem.sampler import Sampler, UnevenSampler
from ..scenario.scenario import Scenario
from ..scenario.setting import WorldScenario
from ..scenario.study import Run
from ..timelines.base import RunTimeline
from ..timelines.replayed import replayed
from ..timelines.simulated import SimulatedTimeline
from ..world.answers import AnswerLog
from ..world.links import UNLIMITED, Quota
from ..world.protocol import Protocol
from ..world.protocol_abilities import OwnTimeline
from ..world.speeds import median_seconds
from ..world.workload import Workload
from .algorithm import Algorithm, check_statistics, sampler_of, workload_of
from .setup import RunSetup


def timeline(run: Run) -> RunTimeline:
    """Returns the timeline of a run of either kind of scenario.

    Raises:
        ScenarioError: The parts of the scenario do not fit each other or the data.
        DataError: A data file is missing or damaged.
    """
    scenario = run.scenario
    if not isinstance(scenario, WorldScenario):
        return set_up(run).timeline
    job = scenario.job
    pooled = scenario.protocol.traits.pooled
    num_clients = scenario.num_workers
    return _kind(scenario.protocol)(
        clients=None if pooled else scenario.clients,
        protocol=scenario.protocol,
        num_clients=num_clients,
        seed=run.seed,
        stop=scenario.stop,
        workload=Workload(
            upload_bytes=job.upload_bytes,
            download_bytes=job.download_bytes,
            contributions_per_epoch=num_clients,
            steps=job.steps,
            samples=job.samples,
        ),
        server=scenario.server,
        player=scenario.player,
        job_steps=_job_steps(scenario, job.steps),
    )


def set_up(run: Run) -> RunSetup:
    """Returns everything about a run that needs no array on a device.

    Raises:
        ScenarioError: The parts of the scenario do not fit each other or the data.
        DataError: A data file is missing or damaged.
    """
    scenario: Scenario = run.scenario
    algorithm: Algorithm = scenario.algorithm
    protocol = scenario.protocol
    chain = algorithm if isinstance(algorithm, HasStages) else None
    clients = scenario.num_workers
    learned, shared = _shared(run)
    learned.check_metrics(scenario.evaluate.metrics)
    counts, exchanged = learned.counts, learned.num_exchanged
    sampler = sampler_of(algorithm, run.seed, shared.pools, protocol)
    if counts.num_statistics:
        own_work = scenario.problem.work is not None
        check_statistics(algorithm, counts, sampler, own_work=own_work)
    num_samples, num_features = shared.data.x_train.shape
    shape = ProblemShape(
        num_samples=num_samples,
        num_features=num_features,
        num_outputs=learned.form.num_outputs,
        num_clients=clients,
        num_weights=counts.num_weights,
        batch=sampler.size,
        num_exchanged=exchanged,
        arrays=learned.numerics.arrays if chain and chain.by_arrays else None,
    )
    workload = workload_of(algorithm, shape, sampler, pooled=protocol.traits.pooled)
    stores = isinstance(algorithm, StoresEmbeddings)
    notes_reads = chain is not None and chain.remembers_reads
    simulated = _kind(protocol)(
        clients=None if protocol.traits.pooled else scenario.clients,
        protocol=protocol,
        num_clients=clients,
        seed=run.seed,
        stop=scenario.stop,
        workload=workload,
        batch=sampler.batch if stores and algorithm.uploads_batch else None,
        num_samples=shape.num_samples,
        batch_size=shape.batch,
        server=scenario.server,
        quota=_quota(scenario, shape, shared),
        notes_reads=notes_reads,
        player=scenario.player,
        answer_log=_answer_log(scenario),
        job_steps=None if scenario.replays else _job_steps(scenario, sampler.steps),
    )
    played: RunTimeline = simulated
    if scenario.timeline is not None and scenario.timeline.replay is not None:
        recording = scenario.timeline
        played = replayed(simulated, recording, run, notes_reads=notes_reads)
    if played.job_steps is not None:
        sampler = _of_own_steps(scenario, counts, sampler, played.job_steps)
        # An epoch is of samples, and how many a job will have is not known.
        unknown = replace(played.workload, contributions_per_epoch=nan)
        played = replace(played, workload=unknown)
    return RunSetup(run, learned, shared, shape, sampler, played)


def sampler(run: Run) -> Sampler:
    """Returns the minibatches of a run alone."""
    scenario: Scenario = run.scenario
    pools = _shared(run)[1].pools
    return sampler_of(scenario.algorithm, run.seed, pools, scenario.protocol)


def _shared(run: Run) -> tuple[Learning, Shares]:
    """Returns what a run learns, and how that is shared out."""
    scenario: Scenario = run.scenario
    learned, pairs = (
        learning(scenario.problem, scenario.engine.precision),
        scenario.pairs,
    )
    return learned, shares(
        learned,
        run.seed,
        clients=scenario.num_workers,
        pooled=scenario.protocol.traits.pooled,
        seconds=median_seconds(*pairs, run.seed) if pairs else None,
    )


def _kind(protocol: Protocol) -> type[SimulatedTimeline]:
    own = isinstance(protocol, OwnTimeline)
    return protocol.timeline() if own else SimulatedTimeline


def _answer_log(scenario: Scenario) -> AnswerLog | None:
    """Returns what keeps the answers of the numerics, if the world asks."""
    if not scenario.asks:
        return None
    known = inputs.identified(scenario)
    parts = [known[key] for key in ("problem", "algorithm", "evaluate", "engine")]
    of = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return AnswerLog(scenario.asks, " and ".join(scenario.asking), of)


def _job_steps(scenario: WorldScenario | Scenario, most: int) -> JobSteps | None:
    """Returns what keeps the local steps of each job, if they change."""
    return JobSteps(scenario.num_workers, most) if scenario.vary_steps else None


def _of_own_steps(
    scenario: Scenario, counts: ModelCounts, sampler: Sampler, job_steps: JobSteps
) -> UnevenSampler:
    """Returns minibatches of which a job has as many as it was given."""
    algorithm: Algorithm = scenario.algorithm
    every = scenario.evaluate.every
    can_shorten = isinstance(algorithm, HasStages) and algorithm.can_shorten_jobs
    refused = {
        f"the algorithm {tag(type(algorithm))!r} as it is; take fed_avg or another "
        f"chain, with local_steps of plain SGD": not can_shorten,
        "a model that keeps statistics of batches; normalise layers or groups": (
            counts.num_statistics > 0
        ),
        "sampling: shuffled, which would pass over samples; take distinct": (
            algorithm.sampling == "shuffled"
        ),
        "noise, which is for full batches; remove one of them": bool(
            isinstance(algorithm, NoisyMessages) and algorithm.noise_law
        ),
        "epochs in stop and evaluate.every, because the samples of a job are "
        "unknown beforehand; take commits or time": bool(
            scenario.stop.epochs or every.epochs
        ),
        f"more than the algorithm's {sampler.steps} local steps, got "
        f"{job_steps.most}; raise algorithm.local_steps": (
            job_steps.most > sampler.steps
        ),
    }
    for what in (what for what, holds in refused.items() if holds):
        raise ScenarioError(f"local steps that change must be without {what}")
    found = UnevenSampler.of(sampler)
    found.job_steps = job_steps
    return found


def _quota(scenario: Scenario, shape: ProblemShape, shared: Shares) -> Quota | None:
    """Returns how many messages may be sent, if that is limited.

    A stated budget takes the place of that by which a client's noise was calculated.
    """
    privacy, algorithm = scenario.privacy, scenario.algorithm
    if not isinstance(algorithm, NoisyMessages):
        return None
    known, stated = algorithm.calibrated, privacy and privacy.budget
    if known is None and stated is None:
        return None
    counts = shared.num_samples, shape.batch, shape.num_weights
    guarantees = algorithm.guarantees(*counts)
    if privacy is not None and stated is not None:
        known = Calibrated(
            "privacy.budget",
            epsilon=stated,
            delta=privacy.delta,
            accountant=privacy.names(algorithm)[0],
            in_all=known and known.in_all,
        )
    assert known is not None
    each = (known.releases or UNLIMITED,) * shape.num_clients
    if known.epsilon is not None:
        each = ledger.limits(guarantees, known)
    by_commit = max((guarantee.by_commit for guarantee in guarantees), default=0)
    return Quota(each, known.in_all or UNLIMITED, by_commit)
