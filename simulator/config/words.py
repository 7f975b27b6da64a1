"""Words of other programs and papers, by which people search for ours."""

OTHERS: dict[str, tuple[str, ...]] = {
    "step_size": ("lr", "learning rate", "eta", "gamma"),
    "batch": ("batch size", "minibatch", "bs"),
    "local_steps": ("inner iterations", "local updates"),
    "local_epochs": ("epochs", "num_epochs"),
    "proximal": ("mu", "proximal_mu"),
    "clients": ("num_clients", "n_clients", "users", "workers"),
    "replicates": ("repetitions", "trials", "seeds"),
    "time": ("seconds", "duration", "virtual time"),
    "seed": ("random seed", "rng"),
    "size": ("buffer size", "aggregation goal"),
    "fed_avg": ("FedAvg", "federated averaging", "FedProx", "FedAvgM", "FedAdam"),
    "dense": ("fully connected", "feedforward", "multilayer perceptron"),
    "sgd": ("local SGD",),
    "psgd": ("AD-PSGD", "D-PSGD", "decentralized SGD"),
    "asynchronous": ("async", "asynchronous SGD", "FedAsync", "Hogwild"),
    "synchronous": ("sync", "BSP"),
    "buffered": ("FedBuff", "buffered aggregation", "semi-asynchronous"),
    "bounded": ("SSP", "stale synchronous parallel", "max staleness"),
    "gossip": ("decentralized", "peer to peer", "p2p"),
    "push_gossip": ("gossip learning",),
    "centralised": ("centralized", "sequential", "minibatch SGD"),
    "dirichlet": ("non-IID", "LDA"),
    "linear": ("logistic", "logistic regression", "softmax regression"),
    "cifar_net": ("ResNet", "ResNet-18", "VGG", "MobileNet"),
    "constant": ("deterministic", "fixed"),
    "expon": ("exponential", "exp"),
    "lognorm": ("lognormal",),
    "norm": ("normal", "Gaussian"),
    "test_accuracy": ("accuracy", "acc"),
    "test_auc": ("AUC", "AUROC"),
}
"""Our words, and for each what others write; a word that means two of ours stands where
it does not name another part of the same kind."""

COMPLETED = {
    "FedProx": "proximal",
    "FedAvgM": "optimizer: {kind: sgd, momentum: ...}",
    "FedAdam": "optimizer: {kind: adam}",
}
"""What has to be set so that our word is what another one means."""


def plain(word: str) -> str:
    """Returns a word without capitals and without signs between letters."""
    return "".join(letter for letter in word.casefold() if letter.isalnum())


SEARCHED = {plain(word): ours for ours, words in OTHERS.items() for word in words}
"""Our word for each of theirs, these as `plain` has them."""
SETTINGS = {plain(word): setting for word, setting in COMPLETED.items()}
"""What has to be set next to our word, for theirs as `plain` has them."""
