"""Evidence and entropy of tempered posteriors from a whole matrix of scores."""

import numpy as np

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu
from orienteer.errors import OrienteerError


def tempered_evidence(scores: Array, log_prior: Array, inverse_temperature: Array) -> tuple[Array, Array]:
    """Logarithm of the evidence, and entropy, of each frame's posterior p_kd ~ w_k exp(beta_d S_kd), in nats.

    scores : (K, D) float32 log-likelihoods S.
    log_prior : (K,) ln w; -inf leaves a row out.
    inverse_temperature : (D,) or a number, beta.

    Returns (D,) float64 twice: ln sum_k w_k exp(beta_d S_kd), and -sum_k p_kd ln p_kd.  A frame that no row
    can explain has evidence -inf and entropy 0.

    >>> ln_evidence, entropy = tempered_evidence(np.zeros((4, 1)), np.log(np.full(4, 0.25)), 1.0)
    >>> round(float(np.exp(ln_evidence[0])), 5), round(float(np.exp(entropy[0])), 5)
    (1.0, 4.0)
    """
    xp = array_namespace(scores)
    K, D = scores.shape
    if log_prior.shape != (K,) or K == 0:
        raise OrienteerError(
            f"scores (K, D) need a log-prior (K,), K at least 1; got {scores.shape} and {log_prior.shape}."
        )
    scores = xp.asarray(scores, dtype=xp.float32)
    log_prior = xp.asarray(log_prior, dtype=xp.float32)
    beta = xp.broadcast_to(xp.asarray(inverse_temperature, dtype=xp.float32), (D,))
    if is_on_gpu(scores):
        return _on_gpu(scores, log_prior, beta)
    from orienteer.posterior._evidence_numba import evidence

    log_evidence, entropy = np.empty(D), np.empty(D)
    scores = np.ascontiguousarray(scores)
    evidence(scores, log_prior, np.ascontiguousarray(beta), log_evidence, entropy)
    return log_evidence, entropy


def _on_gpu(scores: Array, log_prior: Array, beta: Array) -> tuple[Array, Array]:
    import cupy

    # With a frame's scores side by side: sums over columns of a tall matrix keep few multiprocessors busy.
    scores, beta = cupy.ascontiguousarray(scores.T), beta[:, None]
    # As in the twin, one of the scores is subtracted so that differences keep their digits.
    reference = cupy.where(cupy.isfinite(scores[:, :1]), scores[:, :1], 0)
    x = beta * (scores - reference) + log_prior
    x[cupy.isnan(x)] = -cupy.inf
    top = x.max(axis=1, keepdims=True)
    x -= cupy.where(cupy.isfinite(top), top, 0)
    p = cupy.exp(x)
    total = p.sum(axis=1, dtype=np.float64)
    moment = cupy.where(p > 0, p * x, 0).sum(axis=1, dtype=np.float64)
    possible = total > 0
    safe = cupy.where(possible, total, 1)
    log_evidence = cupy.log(safe) + (top.astype(np.float64) + beta.astype(np.float64) * reference)[:, 0]
    return cupy.where(possible, log_evidence, -cupy.inf), cupy.where(
        possible, cupy.log(safe) - moment / safe, 0
    )
