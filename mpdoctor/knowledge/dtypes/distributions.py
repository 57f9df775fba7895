"""TensorFlow Probability's distributions: which of their parameters must have one dtype, which is then theirs.

Measured in TensorFlow Probability 0.23 (TensorFlow 2.15) and 0.25 (TensorFlow 2.21): parameters of two dtypes raise
`Found incompatible dtypes` where the distribution is made, and a value of another dtype in `log_prob` and its like.
Python numbers take the dtype of the others, and are float32 alone. Bernoulli, Categorical and OneHotCategorical cast
the values that they are given, and make integers: they are not among these.
"""

from __future__ import annotations

_PLACE = "tensorflow_probability.distributions."
PARAMETERS: dict[str, tuple[str, ...]] = {
    _PLACE + name: tuple(parameters.split())
    for parameters, names in {
        "loc scale": "Normal LogNormal LogitNormal Laplace Cauchy Gumbel Logistic HalfCauchy",
        "loc scale_diag": "MultivariateNormalDiag",
        "loc scale_tril": "MultivariateNormalTriL",
        "loc scale low high": "TruncatedNormal",
        "low high": "Uniform",
        "low high peak": "Triangular",
        "df loc scale": "StudentT",
        "loc scale power": "GeneralizedNormal",
        "loc concentration": "VonMises",
        "concentration1 concentration0": "Beta Kumaraswamy",
        "concentration rate": "Gamma",
        "concentration scale": "InverseGamma Weibull",
        "temperature logits": "RelaxedBernoulli RelaxedOneHotCategorical",
        "scale": "HalfNormal",
        "rate": "Exponential Poisson",
        "concentration": "Dirichlet",
        "loc": "Deterministic VectorDeterministic",
    }.items()
    for name in names.split()
}
# Distributions of the dtype of another one, with where that stands.
AROUND: dict[str, tuple[int, str]] = {
    _PLACE + "Independent": (0, "distribution"),
    _PLACE + "Sample": (0, "distribution"),
    _PLACE + "TransformedDistribution": (0, "distribution"),
    _PLACE + "MixtureSameFamily": (1, "components_distribution"),
}
# Methods whose first argument must have it.
TAKING = ("log_prob", "prob", "cdf", "log_cdf", "kl_divergence", "cross_entropy")
# Methods that give a tensor of it.
GIVING = frozenset(("sample", "mean", "mode", "stddev", "variance", "entropy", *TAKING))
OF_TWO = _PLACE + "kl_divergence"
# Those whose samples are made by `tf.random.gamma`, which refuses both 16-bit dtypes.
SAMPLED_BY_GAMMA = tuple(
    _PLACE + name for name in ("Beta", "Dirichlet", "Gamma", "GeneralizedNormal", "InverseGamma", "StudentT")
)
