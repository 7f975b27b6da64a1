"""The errors that a user can cause, a line each, and the words of their messages."""

import difflib
import re
import sysconfig
import traceback
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from os import PathLike
from pathlib import Path
from types import UnionType

OTHERS: dict[str, tuple[str, ...]] = {
    "algorithm.learning_rate": ("lr", "eta", "gamma"),
    "algorithm.local_learning_rate": ("local_lr", "client_lr"),
    "algorithm.server_learning_rate": ("server_lr",),
    "algorithm.batch_size": ("minibatch", "bs"),
    "algorithm.local_steps": ("inner iterations", "local updates", "steps"),
    "stop.epochs": ("epochs", "num_epochs"),
    "algorithm.local_epochs": ("epochs", "num_epochs"),
    "algorithm.chain": ("compressor", "compression", "quantization"),
    "algorithm.mixing": ("alpha",),
    "algorithm.mu": ("proximal_mu",),
    "algorithm.optimizer": ("momentum", "server_momentum", "weight_decay"),
    "algorithm.staleness_weight": ("staleness function", "staleness_fn", "discount"),
    "decay": ("beta",),
    "exponent": ("a", "alpha", "beta"),
    "slope": ("a",),
    "num_byzantine": ("num_malicious", "num_malicious_clients", "byzantine"),
    "problem.partition.clients": ("num_clients", "n_clients", "total_clients"),
    "clients": ("users", "workers"),
    "clients.number": ("count", "num", "num_clients", "n_clients", "total_clients"),
    "clients.selection.concurrency": ("max_concurrency", "num_participants"),
    "clients.message_loss": ("loss_rate", "packet_loss"),
    "clients.selection.arrivals": ("arrival_rate",),
    "clients.compute": ("delay", "delays", "compute_time", "delay_distribution"),
    "clients.crashes": ("dropout", "failures"),
    "clients.availability": ("dropout", "churn"),
    "replicates": ("repetitions", "trials", "seeds", "n_seeds", "num_seeds"),
    "stop.time": ("time", "seconds", "duration", "virtual time", "horizon"),
    "stop.rounds": ("rounds", "num_rounds", "max_rounds", "communication rounds"),
    "stop.commits": ("steps", "commits", "iterations"),
    "evaluate.every": ("interval", "eval_every", "eval_interval"),
    "seed": ("random seed", "rng"),
    "protocol.buffer_size": ("aggregation goal", "K"),
    "protocol.max_staleness": ("tau_max", "staleness threshold"),
    "value": ("mean", "seconds"),
    "fed_avg": ("FedAvg", "federated averaging", "FedProx", "FedAvgM", "FedAdam"),
    "dense": ("fully connected", "feedforward", "multilayer perceptron"),
    "sgd": ("local SGD",),
    "psgd": ("AD-PSGD", "D-PSGD", "decentralized SGD"),
    "asynchronous": ("async", "asynchronous SGD", "FedAsync", "Hogwild"),
    "synchronous": ("sync", "BSP"),
    "buffered": ("FedBuff", "buffered aggregation", "semi-asynchronous"),
    "ssp": ("stale synchronous parallel", "stale-synchronous"),
    "gossip": ("decentralized", "peer to peer", "p2p"),
    "push_gossip": ("gossip learning",),
    "centralised": ("centralized", "sequential", "minibatch SGD"),
    "dirichlet": ("non-IID", "LDA"),
    "linear": ("logistic", "logistic regression", "softmax regression"),
    "constant": ("deterministic", "fixed"),
    "binom": ("binomial",),
    "expon": ("exponential", "exp"),
    "geom": ("geometric",),
    "lognorm": ("lognormal",),
    "nbinom": ("negative_binomial",),
    "norm": ("normal", "Gaussian"),
    "weibull_min": ("weibull",),
    "test_accuracy": ("accuracy", "acc", "test_acc"),
    "test_auc": ("AUC", "AUROC"),
}
"""stalesim's words, with the place of keys, and for each the words of others; a word
with several meanings is the one that is allowed there."""

KEYS = {
    "batch_size": ("batch",),
    "buffer_size": ("size",),
    "client_weighting": ("weighting",),
    "concurrency": ("in_flight",),
    "distribution": ("law",),
    "learning_rate": ("step_size",),
    "local_learning_rate": ("local_step_size",),
    "margin": ("within", "says"),
    "max_staleness": ("staleness_bound",),
    "message_loss": ("loss", "crashes"),
    "mu": ("proximal",),
    "num_byzantine": ("tolerated",),
    "probability": ("chance",),
    "server_learning_rate": ("server_step_size",),
    "speed": ("power",),
    "staleness_weight": ("weight",),
}
"""The field's words for keys, which scenarios may have: ours, and a further key of its
class if ours has several meanings."""

COMPLETED = {
    "momentum": "kind: sgd and momentum",
    "FedProx": "mu",
    "FedAvgM": "optimizer: {kind: sgd, momentum: ...}",
    "FedAdam": "optimizer: {kind: adam}",
}
"""Entries to add so that a word of stalesim means the same as the other one."""


def fields_words(known: Collection[str]) -> dict[str, str]:
    """Returns the field's words for some of the keys of a class, and ours."""
    return {
        word: ours
        for word, (ours, *others) in KEYS.items()
        if word not in known and {ours, *others}.issubset(known)
    }


def documented(known: Collection[str]) -> dict[str, str]:
    """Returns keys of a class of which pages name the field's word first, and that."""
    return {o: word for word, o in fields_words(known).items() if o not in TAGS}


@cache
def documented_key(key: str) -> str:
    """Returns a dotted key, in any words, in those that pages have; names stay."""
    parts = key.split(".")
    # `loss` has two meanings: next to crashes it is that of clients' messages.
    more = ["crashes"] if parts[0] == "clients" else []
    return ".".join(
        part if owner == "groups" else documented((part, *more)).get(part, part)
        for owner, part in zip(("", *parts), parts, strict=False)
    )


def plain(word: str) -> str:
    """Returns a word without capitals and without signs between letters."""
    return "".join(letter for letter in word.casefold() if letter.isalnum())


SEARCHED: dict[str, dict[str, str]] = {}
"""Our words and their places, for each of theirs, these as `plain` has them."""
for _place, _words in OTHERS.items():
    for _word in _words:
        SEARCHED.setdefault(plain(_word), {})[_place.rpartition(".")[2]] = _place
PLACES = {place.rpartition(".")[2]: place for place in OTHERS if "." in place}
"""Places of keys that are often written elsewhere."""
SETTINGS = {plain(word): setting for word, setting in COMPLETED.items()}
"""Entries to set next to stalesim's word, for others as `plain` has them."""


JOINERS = "\u200c\u200d"
"""Signs between letters, and between parts of an emoji; nothing around them moves."""
QUOTED = 60
"""Characters of a value that a message quotes."""
LONGEST = 200
"""Characters to which `brief` shortens."""
NEAR = 0.6
"""Likeness from which a word is suggested: imagenet is no slip of modelnet40 (0.56)."""
SLIP = 0.8
"""Likeness of a word and a slip in it, such as momentun (0.88)."""
NOT_USERS = (
    str(Path(__file__).parents[1]),
    sysconfig.get_path("stdlib"),
    "<frozen",
)
"""Beginnings of the files of this program and of Python."""
TAGS = ("kind", "law")
"""Entries that name the kind of a mapping."""
_ENDLESS = re.compile(r"(?<![^\s(])'[^']{201,}'|\S{401,}")
"""A long quotation, or a word that is longer than paths are."""


def printable(text: str) -> str:
    r"""Returns a text with control characters as escapes such as `\x1b`.

    Line breaks stay, and so do spaces of all widths.
    """
    if text.isprintable():
        return text
    return "".join(c if _is_shown(c) else repr(c)[1:-1] for c in text)


def one_line(text: str) -> str:
    """Returns a text with line breaks and control characters as escapes."""
    return printable(text).replace("\n", r"\n")


def shortened(text: str, most: int) -> str:
    """Returns a text of at most some characters: its beginning and its end.

    Args:
        text: Text of any length.
        most: Most characters, >= 6.
    """
    if len(text) <= most:
        return text
    end = (most - 3) // 3
    return f"{text[: most - 3 - end]}...{text[-end:]}"


def shown(value: object) -> str:
    """Returns a value as a message quotes it: as YAML has it, and short."""
    if value is None:
        return "nothing"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= QUOTED else f"{text[: QUOTED - 3]}..."


def printed(value: object) -> str:
    """Returns a swept value as text, such as `lognorm(s=1.5 scale=2)`.

    A law is its name and its parameters, without commas: those are between the values
    of a label.
    """
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(printed, value))}]"
    if not isinstance(value, Mapping):
        return str(value)
    kept = {key: each for key, each in value.items() if key not in TAGS}
    rest = " ".join(f"{key}={printed(each)}" for key, each in kept.items())
    name = value.get("kind", value.get("law", ""))
    return f"{name}({rest})" if rest else str(name)


def brief(message: str) -> str:
    """Returns a message with its endless words and quotations shortened."""
    return _ENDLESS.sub(lambda found: shortened(found[0], LONGEST), message)


def suggestion(
    word: object, known: Iterable[str], *, unlisted: Iterable[str] = ()
) -> str:
    """Returns "did you mean ...?" with the nearest known word, or lists all.

    Args:
        word: What was given.
        known: Words that may stand there.
        unlisted: More of them, too many to be listed.
    """
    known = sorted(set(known))
    near, given = _meant(word, [*known, *unlisted])
    if near not in (None, word):
        setting = SETTINGS.get(given)
        return f"did you mean {near!r}{f', with {setting}' if setting else ''}?"
    if any(", " in each for each in known):  # labels, whose ends quotes show
        known = [*map(repr, known)]
    return f"known are {', '.join(known)}" if known else "nothing is known here"


def nearest(word: object, known: Iterable[str]) -> str | None:
    """Returns the known word that another one means or resembles most, if any.

    Capitals and signs between letters do not count, and other programs' words do.
    """
    return _meant(word, known)[0]


def _meant(word: object, known: Iterable[str]) -> tuple[str | None, str]:
    """Returns what `nearest` does, and other programs' word for it, or ""."""
    known, given = list(known), plain(str(word))
    for each in known:
        if plain(each) == given:
            return each, ""
    theirs = {
        their: next(each for each in ours if each in known)
        for their, ours in SEARCHED.items()
        if not ours.keys().isdisjoint(known)
    }
    if given in theirs:
        return theirs[given], given
    for words, likeness in ((known, SLIP), ([*theirs], SLIP), (known, NEAR)):
        if near := difflib.get_close_matches(str(word), words, 1, likeness):
            return theirs.get(near[0], near[0]), near[0] if words != known else ""
    return None, ""


def elsewhere(word: str, fields: Collection[str], *, at_top: bool) -> str:
    """Returns the place where an unknown key is known; "" where it means one here."""
    known = _in_pages(fields)
    meant = SEARCHED.get(plain(word), {})
    is_slip = difflib.get_close_matches(word, known, 1, NEAR)
    moved = "" if is_slip else PLACES.get(word, "")
    place = moved or next(iter(meant.values()), "")
    return place if "." in place and (at_top or meant.keys().isdisjoint(known)) else ""


def _in_pages(fields: Collection[str]) -> set[str]:
    return {documented(fields).get(key, key) for key in fields}


def advice(word: str, fields: Collection[str], *, at_top: bool) -> str:
    """Returns what to write for an unknown key: one of those known, or a place."""
    if place := elsewhere(word, fields, at_top=at_top):
        return f"write {place}"
    more = {*fields, *fields_words(fields)}
    return suggestion(word, _in_pages(fields), unlisted=more)


def counted(number: int, noun: str, nouns: str = "") -> str:
    """Returns a number and its noun, in the plural where it needs one."""
    return f"{number} {noun if number == 1 else nouns or f'{noun}s'}"


def ranges(numbers: Iterable[int]) -> str:
    """Returns whole numbers in short, such as `0 to 3, 5`."""
    ends: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ends and ends[-1][1] == number - 1:
            ends[-1][1] = number
        else:
            ends.append([number, number])
    return ", ".join(
        str(low) if low == high else f"{low} to {high}" for low, high in ends
    )


def said(error: BaseException) -> str:
    """Returns an error in one line, with the last line of a user's file that it saw."""
    first = next((line for line in str(error).splitlines() if line.strip()), "")
    text = one_line(f"{type(error).__name__}: {first.strip()}"[:300])
    place = users_line(error)
    return f"{text} ({place})" if place else text


def users_line(error: BaseException) -> str:
    """Returns file and line of a user's that an error saw last; "" if it saw none."""
    users = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "site-packages" not in frame.filename
        and not frame.filename.startswith(NOT_USERS)
    ]
    if users:
        return f"{Path(users[-1].filename).name}:{users[-1].lineno}"
    # SimPy raises a copy of what a process has raised, with that as its cause.
    return users_line(error.__cause__) if error.__cause__ else ""


def _is_shown(character: str) -> bool:
    space = unicodedata.category(character) == "Zs"
    return character.isprintable() or space or character in f"\n{JOINERS}"


class UserError(ValueError):
    """Something the user can put right; the command line prints it and exits 2.

    Each argument is one line with the fault, its place and the remedy: mostly one, for
    a scenario with several mistakes one each. A name or value that would fill the
    screen is shortened to its beginning and end.
    """

    @property
    def lines(self) -> list[str]:
        """The message, line by line."""
        return [brief(str(each)) for each in self.args]

    def __str__(self) -> str:
        return "\n".join(self.lines)


def check_type(name: str, value: object, kinds: type | UnionType, rule: str) -> None:
    """Refuses an argument of a public function that is of no expected type.

    Args:
        name: Name of the argument.
        value: What was given.
        kinds: Types that are expected.
        rule: The same in words, with an example.

    Raises:
        UserError: It is of another type.
    """
    if not isinstance(value, kinds):
        got = f"{type(value).__name__} {shown(value)}"
        raise UserError(f"{name} must be {rule}, got {got}")


def check_folder(folder: object) -> None:
    """Refuses a folder that is no path, as `check_type`."""
    rule = 'the path of a folder, such as "my-study"'
    check_type("folder", folder, str | PathLike, rule)


class ScenarioError(UserError):
    """A scenario that cannot be simulated as it is written."""


class DataError(UserError):
    """A data file that is missing, damaged or of another format than it should be."""


class StudyError(UserError):
    """A study folder that cannot be read or written."""


class DamageError(StudyError):
    """A file of a study that is damaged: nothing follows from it."""
