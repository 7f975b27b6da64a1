"""FedBCD whose exchanges are encrypted in earnest, by CKKS, on small problems.

It is slow and learns nothing else than the unencrypted method: it shows that the
exchange can be computed on ciphertexts, and with what error. What encryption costs a
simulated run is a matter of the scenario (`algorithm.encryption`).
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest
from jaxtyping import Float, Int
from scipy.special import expit

from stalesim.simulator.privacy.encryption import Ckks

ERROR = 3e-8
"""Most that a decrypted number is off after an exchange of few parties; 0.9e-8 to
2.4e-8 as measured, for five parties and numbers of sizes 1 to 1,000."""


DIMENSION = 2 * Ckks.capacity
"""N of the ring: it holds half as many numbers."""
MODULI_BITS = (60, 40, 40, 60)
"""Bits of the coefficients; 200 in all, of 218 that are safe for N (128 bits)."""
SCALE = 1_099_511_480_321.0
"""Factor of numbers before they are rounded.

The largest prime below 2**40 that is 1 modulo 2 N, which is the modulus that the first
rescaling divides by: at 2**40 itself, every product would be off by 1.3e-7 of it.
"""


class Keys(NamedTuple):
    """The two halves of a pair of keys, as TenSEAL's contexts.

    Attributes:
        secret: Encrypts and decrypts.
        public: Computes with ciphertexts, and can decrypt nothing.
    """

    secret: Any
    public: Any


def tenseal() -> Any:
    """Imports and returns TenSEAL, without which tests are skipped."""
    return pytest.importorskip("tenseal")


def make_keys() -> Keys:
    """Returns a new pair of keys for CKKS, for use on one thread."""
    ts = tenseal()
    secret = ts.context(
        ts.SCHEME_TYPE.CKKS,
        poly_modulus_degree=DIMENSION,
        coeff_mod_bit_sizes=list(MODULI_BITS),
        n_threads=1,
    )
    secret.global_scale = SCALE
    public = secret.copy()
    public.make_context_public()
    return Keys(secret, public)


class Learned(NamedTuple):
    """The result of encrypted training.

    Attributes:
        weights: Weights of each party.
        upload_bytes: Bytes of all messages to the party with the labels.
        download_bytes: Bytes of its replies, one to each other party in every exchange.
    """

    weights: list[Float[np.ndarray, " _"]]
    upload_bytes: int
    download_bytes: int


def encrypted_fedbcd(
    features: Sequence[Float[np.ndarray, "N _"]],
    labels: Int[np.ndarray, " N"],
    weights: Sequence[Float[np.ndarray, " _"]],
    batches: Sequence[Int[np.ndarray, " _"]],
    *,
    local_steps: int,
    step_size: float,
    loss: Literal["taylor", "sigmoid"] = "taylor",
    l2: float = 0.0,
) -> Learned:
    """Trains linear parties by FedBCD-p; each of its exchanges is encrypted.

    In an exchange all parties but the last, who holds the labels, encrypt their outputs
    for the batch. The last adds them up and adds its own. With the loss `taylor` it
    computes the loss's derivative, which is affine, and every party corrects what it
    receives for its own later steps without knowing a label. With `sigmoid` none can
    compute the derivative of ciphertexts: what comes back is the sum, and every party
    is taken to know the labels of the batch (F-01, `recompute`).

    A holder of the secret key decrypts the reply for everyone, also for the last party,
    which computes without it.

    Each local step moves a weight by at most `step_size * ERROR * x` more than it
    does without encryption, with x the largest absolute feature. As long as the steps
    do not enlarge differences, so that the step size is below the inverse of the
    objective's smoothness, weights end within `len(batches) * local_steps * step_size *
    ERROR * x` of those of the same steps in the clear.

    Args:
        features: Features of each of two parties or more; the last holds the labels.
        labels: Labels, 0 or 1.
        weights: Weights of each party at the start.
        batches: Rows of each exchange, as many as fit into a ciphertext.
        local_steps: Q, of every party after every exchange.
        step_size: Step size of local steps, on the mean of the batch's losses.
        loss: Loss of the summed outputs.
        l2: Coefficient of half the squared weights that are added to the loss.

    Returns:
        The weights at the end, and the bytes of all messages.

    Source: FedBCD, Algorithm 2; second-order loss F-10.
    """
    keys = make_keys()
    current = [np.asarray(own, np.float64) for own in weights]
    upload_bytes = download_bytes = 0
    for batch in batches:
        x, y = [own[batch] for own in features], labels[batch]
        outputs = [rows @ own for rows, own in zip(x, current, strict=True)]
        messages = [_encrypt(keys, sent) for sent in outputs[:-1]]
        reply = _answer(keys, messages, outputs[-1], y, loss)
        received = _decrypt(keys, reply)
        upload_bytes += sum(map(len, messages))
        download_bytes += len(messages) * len(reply)
        for party, (rows, sent) in enumerate(zip(x, outputs, strict=True)):
            own = current[party]
            for _ in range(local_steps):
                # Outputs of the other parties stay as they were at the exchange.
                moved = rows @ own - sent
                if loss == "taylor":
                    error = received + moved / 4  # the derivative is affine, slope 1/4
                else:
                    error = expit(received + moved) - y
                own = own - step_size * (rows.T @ error / len(batch) + l2 * own)
            current[party] = own
    return Learned(current, upload_bytes, download_bytes)


def _encrypt(keys: Keys, values: Float[np.ndarray, " S"]) -> bytes:
    """Returns a message with the ciphertext of some numbers."""
    return tenseal().ckks_vector(keys.secret, values.tolist()).serialize()


def _answer(
    keys: Keys,
    messages: list[bytes],
    own: Float[np.ndarray, " S"],
    labels: Int[np.ndarray, " S"],
    loss: Literal["taylor", "sigmoid"],
) -> bytes:
    """Returns the reply of the party with the labels, by the public key alone."""
    load = tenseal().ckks_vector_from
    total = load(keys.public, messages[0])
    for message in messages[1:]:
        total += load(keys.public, message)
    total += own.tolist()
    if loss == "taylor":
        total *= 0.25
        total += (0.5 - labels).tolist()
    return total.serialize()


def _decrypt(keys: Keys, message: bytes) -> Float[np.ndarray, " S"]:
    return np.array(tenseal().ckks_vector_from(keys.secret, message).decrypt())
