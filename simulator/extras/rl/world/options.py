"""Options of a world of asynchronous reinforcement learning: who makes and who trains.

`generation` makes samples in slots, `queue` keeps the finished ones, `trainer` takes
batches of them, `weights` sends new versions to the slots.
"""

from math import isfinite
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from ....parts.base import Config, LocatedError
from ....parts.errors import ScenarioError
from ....parts.expressions import Quantity, per_client
from ....world.laws.base import AnyLaw, Law
from ....world.laws.distributions import Constant

MOST_SLOTS = 1_000_000
"""Samples that are generated at once, on all machines together."""
MOST_GROUP = 100_000
Count = Annotated[int, Field(ge=1)]


def _rising_table(table: dict[int, float]) -> dict[int, float]:
    """Returns a table of seconds per token unchanged, if it is one."""
    if not table or min(table) < 1:
        raise ValueError(
            f"must have numbers of busy slots from 1 on as keys, got {sorted(table)}; "
            f'write for example {{"1": 0.01, "64": 0.02}}'
        )
    wrong = [v for v in table.values() if not (isfinite(v) and v > 0)]
    if wrong:
        raise ValueError(
            f"must have seconds per token > 0, got {wrong[0]:g}; change it"
        )
    return table


SpeedTable = Annotated[
    dict[int, Annotated[float, Field(gt=0)]], AfterValidator(_rising_table)
]
"""Seconds per token by busy slots of a machine; linear in between, constant outside."""


class Generation(Config):
    """Who makes samples: slots, which make one token after the other."""

    slots: Count
    """Samples that a machine generates at once (its concurrency)."""
    machines: Count = 1
    """Machines that generate; each has the number of slots above."""
    tokens: AnyLaw
    """Length of a sample, tokens. They need not be whole."""
    most_tokens: Annotated[float, Field(gt=0)] | None = None
    """Length at which a sample is cut off."""
    difficulty: AnyLaw | None = None
    """Factor of all lengths of a prompt's samples, drawn once a prompt."""
    seconds_per_token: SpeedTable | Quantity = 0.01
    """Virtual seconds of a token. An expression or list in the busy slots `m` of a
    machine with `M` slots, or a table of them (linear in between)."""
    group: Annotated[int, Field(ge=1, le=MOST_GROUP)] = 1
    """Samples of a prompt."""
    complete: bool = True
    """Whether a group enters the queue as a whole, when its last sample is finished; a
    partial one enters sample by sample."""
    admit: Literal["sample", "group"] = "sample"
    """What a free slot takes: the next sample; or a whole group starts once there are
    slots for it, and they are free again when its last sample is finished (AReaL's
    default), which makes far fewer samples where lengths vary."""
    max_async_level: Annotated[int, Field(ge=0)] | None = None
    """Batches by which starts may lead the trainer (pacing): 0 is synchronous. It
    bounds staleness only with `order: in_order`, where no sample is overtaken. By
    default slots never wait."""
    retry_length: Literal["kept", "redrawn"] = "kept"
    """Length of a sample that is made again after an abort or a drop: its own, or a new
    one by the law of `tokens`. With new ones long samples are stopped until they come
    out short, so that trained lengths are biased."""

    @property
    def num_slots(self) -> int:
        """Slots of all machines."""
        return self.slots * self.machines

    def speeds(self) -> list[float]:
        """Returns seconds per token by the busy slots of the busiest machine, from 1.

        Raises:
            LocatedError: one of them is not above 0, or has no value.
        """
        place = ("generation", "seconds_per_token")
        if isinstance(self.seconds_per_token, dict):
            return _interpolated(self.seconds_per_token, self.slots)
        try:
            found = per_client(self.seconds_per_token, self.slots, ".".join(place))
        except ScenarioError as error:
            raise LocatedError(str(error), place) from None
        for busy, value in enumerate(found, 1):
            if not value > 0:
                raise LocatedError(
                    f"{'.'.join(place)} must be > 0, got {float(value):g} with {busy} "
                    f"busy slots; change it",
                    place,
                )
        return [float(value) for value in found]


class SampleQueue(Config):
    """Where finished groups wait for the trainer, and which of them it gets."""

    order: Literal["ready_first", "freshest", "weight_fifo", "in_order"] = "ready_first"
    """`ready_first` is by entry into the queue, `freshest` by version, the newest one
    first. `weight_fifo` is by version, the oldest first, and `in_order` by start: these
    two wait for unfinished samples that would come first."""
    capacity: Annotated[float, Field(ge=1)] | None = None
    """Batches that it holds; by default any number."""
    full: Literal["drop_oldest", "wait"] = "drop_oldest"
    """Beyond the capacity: the groups that entered first are dropped, or a finished
    group keeps its last slot until there is room."""
    max_age: Annotated[int, Field(ge=0)] | None = None
    """Greatest staleness of a sample that is trained, in versions (a window over
    versions). `dropped` says what becomes of older ones."""
    dropped: Literal["lost", "again", "masked", "withheld"] = "lost"
    """A group with a sample that is too old is gone with `lost`; with `again` its
    prompt is generated again at once. The other two keep the group: a sample that is
    too old counts in the baseline of its group, and has no gradient. It fills its batch
    with `masked`, and does not with `withheld`, where a group is gone once all of it is
    too old. Groups beyond the capacity are gone unless `again`.

    Source: PrimeIntellect-ai/prime-rl, pull requests 2329 (`masked`), 2960
    (`withheld`)."""


class PolicyTrainer(Config):
    """Who trains: batches of finished samples, one step after the other."""

    samples: Count | None = None
    """Samples of a batch; groups that are complete must fill it exactly."""
    tokens: Annotated[float, Field(gt=0)] | None = None
    """Tokens that a batch has at least, in place of a number of samples."""
    step: AnyLaw = Constant(value=0)
    """Virtual seconds of a step on one machine, whatever is in the batch."""
    seconds_per_token: Annotated[float, Field(ge=0)] = 0.0
    """Virtual seconds of a step on one machine for each token of the batch."""
    machines: Count = 1
    """Machines that train; a step's time is divided by their number."""
    optimizer_steps: Count = 1
    """Steps of the optimiser on one batch, each on an equal part. Versions count
    batches; staleness is also reported in these."""

    @model_validator(mode="after")
    def _one_unit(self) -> "PolicyTrainer":
        if (self.samples is None) == (self.tokens is None):
            raise ValueError(
                "must have exactly one of samples and tokens; write for example "
                "samples: 128"
            )
        return self

    @property
    def batch(self) -> float:
        """Least size of a batch: in samples, or in tokens."""
        return float(self.samples or self.tokens or 0)


class WeightUpdates(Config):
    """How the weights of a finished step get to the slots.

    Source: `pause_generation` of SGLang has the modes `abort`,
    `retract` and `in_place`.
    """

    mode: Literal["in_place", "retract", "abort", "wait"] = "in_place"
    """`in_place`: running samples continue with the new weights, so their tokens have
    several versions. `retract`: they do too, but the tokens so far are read again.
    `abort`: they are stopped, and their samples made again from the first token, as
    long as before or not (`generation.retry_length`). `wait`: no sample starts, and the
    weights are loaded when those under way are finished."""
    every: Count = 1
    """Batches from one update to the next."""
    seconds: AnyLaw = Constant(value=0)
    """Virtual seconds of loading, during which nothing is generated."""
    recompute: Annotated[float, Field(ge=0)] = 0.0
    """With `retract`: time to compute a token of a sample again, in times of generating
    one."""

    @model_validator(mode="after")
    def _retracts(self) -> "WeightUpdates":
        if self.recompute and self.mode != "retract":
            raise LocatedError(
                f"weights.recompute must be left out for the mode {self.mode!r}, which "
                f"computes nothing again; remove it, or take retract"
            )
        return self


class RolloutStop(Config):
    """The ends of a run; the first that comes about counts."""

    steps: Count | None = None
    """Steps of the trainer (batches)."""
    samples: Count | None = None
    """Samples that were trained, or masked."""
    time: Annotated[float, Field(gt=0)] | None = None
    """Virtual seconds."""

    @model_validator(mode="after")
    def _ends(self) -> "RolloutStop":
        if (self.steps, self.samples, self.time) == (None, None, None):
            raise ValueError(
                "must have at least one of steps, samples and time, or the run does "
                "not end; add one"
            )
        return self


class RolloutEntries(Config):
    """The four entries of a world of samples."""

    generation: Generation
    """Slots that make samples."""
    queue: SampleQueue = Field(default_factory=SampleQueue)
    """The queue of finished samples."""
    trainer: PolicyTrainer
    """The batch and the duration of a step."""
    # Made when it is needed: a default's laws would load all parts with this module.
    weights: WeightUpdates = Field(default_factory=WeightUpdates)
    """How a new version gets to the slots."""


class RolloutOptions(RolloutEntries):
    """All of a world: the simulator's inputs besides a seed."""

    stop: RolloutStop
    """End of a run."""

    def described(self, at: str = "") -> dict[str, object]:
        """Returns the world's description, as in `Protocol.described`.

        Args:
            at: Where its entries are in a scenario, such as `protocol.`.
        """
        return {
            "entities": f"{self.generation.num_slots} slots that generate samples, one "
            f"after the other for each of them, and a trainer of batches",
            "stages": {
                "generation, tokens": f"{at}generation.tokens",
                "seconds of a token": f"{at}generation.seconds_per_token",
                "training": f"{at}trainer.step",
            },
            "resources": {"the trainer, which makes one step after the other": ""},
            "queues": [f"finished samples, as {at}queue has it"],
            "symbols": "in the seconds of a token m is the number of busy slots of a "
            "machine, from 1, and M is the number of its slots",
            "scheduling": "Events of slots, queue and trainer, in virtual time; at one "
            "instant weights are loaded first, then a step ends, and samples begin and "
            "end.",
        }


def check_rollouts(world: RolloutOptions) -> None:
    """Refuses options that do not fit, or with which a world does not advance."""
    generation, queue, trainer = world.generation, world.queue, world.trainer
    if generation.num_slots > MOST_SLOTS:
        raise LocatedError(
            f"generation.slots must be at most {MOST_SLOTS:,} on all machines, got "
            f"{generation.num_slots:,}; take fewer"
        )
    if generation.admit == "group":
        least = generation.group
        if not generation.complete or world.weights.mode == "abort":
            raise LocatedError(
                "generation.admit must be sample with complete: false or weights.mode: "
                "abort, which let go of single samples, got 'group'; change one of them"
            )
        if generation.num_slots < least:
            raise LocatedError(
                f"generation.slots must be at least generation.group ({least}) with "
                f"admit: group, got {generation.num_slots}; raise it"
            )
    generation.speeds()
    _check_laws(world)
    whole = generation.group if generation.complete else 1
    if trainer.samples is not None and trainer.samples % whole:
        raise LocatedError(
            f"trainer.samples must be a multiple of generation.group ({whole}), got "
            f"{trainer.samples}; change one of them, or set generation.complete: false"
        )
    if generation.max_async_level is not None and trainer.samples is None:
        raise LocatedError(
            "generation.max_async_level must be left out if batches count tokens, "
            "because their samples are unknown; remove it, or give trainer.samples"
        )
    if queue.order in ("weight_fifo", "in_order") and queue.capacity is not None:
        raise LocatedError(
            f"queue.capacity must be left out for the order {queue.order!r}, which may "
            f"wait for a group while others fill the queue; remove it, and bound the "
            f"queue by generation.max_async_level"
        )
    _check_kept(queue)
    least = world.weights.every - 1
    if queue.max_age is not None and queue.max_age < least:
        raise LocatedError(
            f"queue.max_age must be at least weights.every - 1 ({least}), got "
            f"{queue.max_age}, or no sample could be trained before the next update; "
            f"raise it"
        )


def _check_kept(queue: SampleQueue) -> None:
    """Refuses groups that are kept for no reason, or fill a queue for ever."""
    if queue.dropped in ("lost", "again"):
        return
    if queue.max_age is None:
        raise LocatedError(
            f"queue.max_age must be set with dropped: {queue.dropped}, which is of "
            f"samples that are older; set it"
        )
    if queue.dropped == "withheld" and queue.capacity and queue.full == "wait":
        raise LocatedError(
            "queue.full must be drop_oldest with dropped: withheld, because a full "
            "queue may have no batch, got 'wait'; change it, or take masked"
        )


def _check_laws(world: RolloutOptions) -> None:
    """Refuses laws without values, and samples that take no time."""
    world.trainer.step.check(1, "trainer.step")
    world.weights.seconds.check(1, "weights.seconds")
    moving: dict[str, Law | None] = {
        "generation.tokens": world.generation.tokens,
        "generation.difficulty": world.generation.difficulty,
    }
    for name, law in moving.items():
        if law is not None and not law.check(1, name).all():
            raise LocatedError(
                f"{name} must be above 0, got always 0; give another law",
                tuple(name.split(".")),
            )


def _interpolated(table: dict[int, float], slots: int) -> list[float]:
    at = sorted(table)
    values = [table[key] for key in at]
    return np.interp(np.arange(1, slots + 1), at, values).tolist()
