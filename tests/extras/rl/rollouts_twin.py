"""A slow world of samples, written from methods.md, section 13, and from the options.

No code of the simulator: every sample keeps the tokens that it still needs, and at each
instant all of them are looked at. Instants have an order: weights are there, the
trainer's step ends, slots begin samples, one sample ends (that which was begun first).
"""

import math
from types import SimpleNamespace as Bag
from typing import Any


def twin(options: dict[str, Any], draws: Any) -> Any:
    """Plays a world; returns its samples and steps as bags in the order of starts."""
    world = World(options, draws)
    world.run()
    return world


class World:
    def __init__(self, options: dict[str, Any], draws: Any) -> None:
        self.o, self.d = Bag(**options), draws
        self.now = 0.0
        self.log: list[Bag] = []
        self.steps: list[Bag] = []
        self.slots = [
            Bag(sample=None, holds=None, kept=None) for _ in range(self.o.slots)
        ]
        self.to_repeat: list[tuple[int, int, int, int]] = []
        self.num_fresh = self.num_groups = self.credit = 0
        self.lengths: dict[tuple[int, int], float] = {}
        self.members: dict[int, list[Bag]] = {}
        self.entered: list[Bag] = []
        self.entries = 0
        self.held: list[tuple[Bag, list[Bag]]] = []
        self.step: Bag | None = None
        self.version = self.in_use = 0
        self.num_loads = 0
        self.load: Bag | None = None
        self.pending: int | None = None
        self.trained = 0
        self.seconds = dict.fromkeys(("busy", "paused", "blocked"), 0.0)
        self.stop = ""

    # who is generating, and how fast

    def generating(self) -> list[Bag]:
        return [s.sample for s in self.slots if s.sample is not None]

    def frozen(self) -> bool:
        return self.load is not None and self.load.ends > self.load.begun

    def seconds_per_token(self) -> float:
        busy = len(self.generating())
        return self.o.speeds[math.ceil(busy / self.o.machines) - 1]

    def run(self) -> None:
        self.begin_samples()
        while not self.stop:
            self.instant()

    def instant(self) -> None:
        events = []
        if self.step is not None:
            events.append((self.step.ends, 1, 0, self.end_step))
        if self.load is not None:
            events.append((self.load.ends, 0, 0, self.end_load))
        if self.generating() and not self.frozen():
            pace = self.seconds_per_token()
            first = min(self.generating(), key=lambda s: (s.needs, s.row))
            time = self.now + first.needs * pace
            events.append((time, 3, 0, lambda: self.end_sample(first)))
        assert events, "the world stands still"
        time, _, _, what = min(events, key=lambda e: e[:3])
        if self.o.stop_time is not None and time > self.o.stop_time:
            self.pass_time(self.o.stop_time)
            self.stop = "time"
            return
        self.pass_time(time)
        what()
        if self.stop:
            return
        self.trainer()
        soon = [
            self.step is not None and self.step.ends == time,
            self.load is not None and self.load.ends == time,
        ]
        if not any(soon):
            self.begin_samples()

    def pass_time(self, time: float) -> None:
        for what, slots in (
            ("paused" if self.frozen() else "busy", len(self.generating())),
            ("blocked", sum(slot.holds is not None for slot in self.slots)),
        ):
            self.seconds[what] += (time - self.now) * slots
        if self.generating() and not self.frozen() and time > self.now:
            made = (time - self.now) / self.seconds_per_token()
            for sample in self.generating():
                sample.needs -= made
                again = min(made, sample.to_recompute)
                sample.to_recompute -= again
                self.give(sample, made - again)
        self.now = time

    def give(self, sample: Bag, tokens: float) -> None:
        sample.made += tokens
        by = sample.by_version
        by[self.in_use] = by.get(self.in_use, 0.0) + tokens

    # samples

    def may_begin(self) -> tuple[int, int, int, int] | None:
        if self.to_repeat:
            return self.to_repeat.pop(0)
        level = math.inf if self.o.level is None else self.o.level
        held_back = sum(
            len(item.samples) - len(self.of_batch(item)) for item in self.entered
        )
        if self.credit - held_back >= (self.version + 1 + level) * self.o.batch:
            return None
        prompt, member = self.num_fresh // self.o.group, self.num_fresh % self.o.group
        self.num_fresh += 1
        self.credit += 1
        if member == 0:
            self.last_group = self.num_groups
            self.num_groups += 1
        return self.last_group, prompt, member, 0

    def idle(self) -> list[Bag]:
        nothing = (None, None, None)
        return [s for s in self.slots if (s.sample, s.holds, s.kept) == nothing]

    def begin_samples(self) -> None:
        for slot in self.slots:
            if slot in self.idle():
                if self.frozen() or self.pending is not None:
                    return
                member = self.num_fresh % self.o.group
                if self.to_repeat:
                    member = self.to_repeat[0][2]
                if self.o.by_group and member == 0 and len(self.idle()) < self.o.group:
                    return
                found = self.may_begin()
                if found is None:
                    return
                group, prompt, member, attempt = found
                length = self.lengths.get((prompt, member))
                if length is None or self.o.retry_length == "redrawn":
                    length = self.d.length(prompt, member, attempt)
                self.lengths[prompt, member] = length
                sample = Bag(
                    row=len(self.log),
                    group=group,
                    prompt=prompt,
                    member=member,
                    attempt=attempt,
                    slot=self.slots.index(slot),
                    length=length,
                    needs=length,
                    made=0.0,
                    to_recompute=0.0,
                    by_version={},
                    start_time=self.now,
                    finish_time=None,
                    ready_time=None,
                    ready_version=0,
                    start_version=self.in_use,
                    outcome="UNDER_WAY",
                    step=0,
                )
                self.log.append(sample)
                self.members.setdefault(group, []).append(sample)
                slot.sample = sample

    def end_sample(self, sample: Bag) -> None:
        slot = self.slots[sample.slot]
        self.give(sample, sample.length - sample.made)
        sample.finish_time, slot.sample = self.now, None
        slot.kept = sample.group if self.o.by_group else None
        ready: list[Bag] = []
        if not self.o.complete:
            ready = [sample]
        else:
            mine = self.members[sample.group]
            done = [s for s in mine if s.finish_time is not None]
            if len(done) == self.o.group:
                ready = done
                for other in self.slots:
                    if other.kept == sample.group:
                        other.kept = None
        if ready and self.o.full == "wait" and self.is_full():
            slot.holds = ready
            self.held.append((slot, ready))
        elif ready:
            self.put(ready)
        self.drain()

    def stop_sample(self, sample: Bag) -> None:
        sample.outcome, sample.finish_time = "ABORTED", self.now
        self.members[sample.group].remove(sample)
        self.slots[sample.slot].sample = None
        self.to_repeat.append(
            (sample.group, sample.prompt, sample.member, sample.attempt + 1)
        )

    # the queue

    def weight(self) -> float:
        return sum(item.weight for item in self.entered)

    def too_old(self, sample: Bag) -> bool:
        limit = self.o.max_age
        return limit is not None and self.version - sample.start_version > limit

    def of_batch(self, item: Bag) -> list[Bag]:
        """Returns a group's samples that count towards a batch's size."""
        if self.o.dropped == "withheld":
            return [s for s in item.samples if not self.too_old(s)]
        return item.samples

    def is_full(self) -> bool:
        return self.o.capacity is not None and self.weight() >= (
            self.o.capacity * self.o.batch
        )

    def put(self, samples: list[Bag]) -> None:
        for sample in samples:
            sample.ready_time, sample.ready_version = self.now, self.version
        self.entered.append(
            Bag(
                samples=sorted(samples, key=lambda s: s.row),
                version=min(s.start_version for s in samples),
                group=samples[0].group,
                weight=sum(s.length for s in samples)
                if self.o.batch_of_tokens
                else len(samples),
                entry=self.entries,
            )
        )
        self.entries += 1
        if self.o.complete:
            del self.members[samples[0].group]
        else:
            self.members[samples[0].group].remove(samples[0])

    def trainer(self) -> None:
        while True:
            for item in list(self.entered):
                old = [self.too_old(s) for s in item.samples]
                gone = {"masked": False, "withheld": all(old)}
                if gone.get(self.o.dropped, any(old)):
                    self.drop(item)
            if self.step is None:
                self.take_batch()
            let_in = False
            while self.held and not self.is_full():
                slot, samples = self.held.pop(0)
                self.put(samples)
                slot.holds = None
                let_in = True
            if not let_in:
                break
        if self.o.capacity is not None and self.o.full == "drop_oldest":
            while self.weight() > self.o.capacity * self.o.batch:
                self.drop(min(self.entered, key=lambda item: item.entry))

    def drop(self, item: Bag) -> None:
        self.entered.remove(item)
        for sample in item.samples:
            sample.outcome = "DROPPED"
        if self.o.dropped != "again":
            self.credit -= len(item.samples)
            return
        group = item.group
        if self.o.complete:
            group, self.num_groups = self.num_groups, self.num_groups + 1
        for sample in item.samples:
            self.to_repeat.append(
                (group, sample.prompt, sample.member, sample.attempt + 1)
            )

    def take_batch(self) -> None:
        keys = {
            "ready_first": lambda item: item.entry,
            "freshest": lambda item: (-item.version, item.entry),
            "weight_fifo": lambda item: (item.version, item.entry),
            "in_order": lambda item: (item.group, item.entry),
        }
        batch, weight = [], 0.0
        for item in sorted(self.entered, key=keys[self.o.order]):
            if self.o.order == "weight_fifo":
                begun = [s for mine in self.members.values() for s in mine]
                if any(s.start_version < item.version for s in begun):
                    return
            if self.o.order == "in_order":
                groups = [group for group, mine in self.members.items() if mine]
                groups += [group for group, *_ in self.to_repeat]
                if any(group < item.group for group in groups):
                    return
            batch.append(item)
            for sample in self.of_batch(item):
                weight += sample.length if self.o.batch_of_tokens else 1
            if weight >= self.o.batch:
                break
        if weight < self.o.batch:
            return
        samples = [sample for item in batch for sample in item.samples]
        for item in batch:
            self.entered.remove(item)
        sent = [sample for item in batch for sample in self.of_batch(item)]
        tokens = sum(sample.length for sample in sent)
        if not self.o.batch_of_tokens:
            self.credit += int(self.o.batch) - len(samples)
        number = len(self.steps)
        ends = self.now + self.d.step(number, tokens)
        left = sum(len(item.samples) for item in self.entered)
        self.step = Bag(
            samples=samples, sent=len(sent), ends=ends, begun=self.now, left=left
        )
        self.steps.append(self.step)
        for sample in samples:
            sample.step = number + 1

    # versions

    def end_step(self) -> None:
        assert self.step is not None
        for sample in self.step.samples:
            sample.outcome = "MASKED" if self.too_old(sample) else "TRAINED"
        self.trained += self.step.sent
        self.step, self.version = None, self.version + 1
        if self.o.stop_steps is not None and self.version >= self.o.stop_steps:
            self.stop = "steps"
        elif self.o.stop_samples is not None and self.trained >= self.o.stop_samples:
            self.stop = "samples"
        if self.version % self.o.every == 0:
            self.published = self.version
            if self.load is None and self.pending is None:
                self.ask()

    def ask(self) -> None:
        if self.o.mode == "wait":
            self.pending = self.published
            self.drain()
            return
        if self.o.mode == "abort":
            for sample in sorted(self.generating(), key=lambda s: s.row):
                self.stop_sample(sample)
        self.begin_load()

    def drain(self) -> None:
        if self.pending is not None and self.load is None and not self.generating():
            self.begin_load()

    def begin_load(self) -> None:
        took = self.d.load(self.num_loads)
        self.num_loads += 1
        self.load = Bag(version=self.published, begun=self.now, ends=self.now + took)

    def end_load(self) -> None:
        assert self.load is not None
        if self.o.mode == "retract":
            for sample in self.generating():
                more = self.o.recompute * sample.made
                sample.needs += more - sample.to_recompute
                sample.to_recompute = more
        self.in_use, self.load, self.pending = self.load.version, None, None
        if self.published > self.in_use:
            self.ask()
