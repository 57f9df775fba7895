"""Which dtype numpy's functions give their results, as data; read from numpy 2.4."""

from __future__ import annotations

# The position of `dtype`, in functions whose result is float64 without one.
FLOAT64 = {"zeros": 1, "ones": 1, "empty": 1, "eye": 3, "identity": 1, "linspace": 5, "logspace": 5, "geomspace": 4}
# In numpy.random; some take a `dtype`, by name only.
RANDOM = ("normal", "uniform", "rand", "randn", "random", "random_sample", "standard_normal")
# Functions that go by the numbers that they are given: the position of `dtype`, and that of the numbers.
BY_VALUE = {"array": (1, 0), "asarray": (1, 0), "full": (2, 1)}
# The result has the dtype of the first argument, where that is floating-point; so has that of the methods.
KEEPING = frozenset(
    [
        *("exp", "log", "log1p", "expm1", "sqrt", "sin", "cos", "tan", "tanh", "abs", "square", "negative", "floor"),
        *("ceil", "sum", "mean", "max", "min", "std", "var", "cumsum", "tile", "repeat", "reshape", "transpose"),
        *("expand_dims", "squeeze", "flip", "flipud", "fliplr", "roll", "pad", "clip", "moveaxis", "swapaxes"),
        *("ravel", "triu", "tril", "copy", "ascontiguousarray", "diag", "flatten", "T"),
        # these in NumPy 1.19, 1.26 and 2.4; not percentile and quantile, which give float64 before NumPy 2
        *("median", "average", "prod", "cumprod", "ptp", "diff", "amax", "amin", "nan_to_num", "sort", "take"),
        *("nanmean", "nanmedian", "nanmax", "nanmin", "nansum", "nanstd", "nanvar", "rot90", "partition"),
        *("around", "round", "rint", "trunc", "sign", "log2", "log10", "arctan", "sinh", "cosh", "take_along_axis"),
    ]
)
# So has theirs, unless they are given a `dtype`: its position.
LIKE = {"zeros_like": 1, "ones_like": 1, "empty_like": 1, "full_like": 2}
# The result has the dtype that the first two arguments agree on, or the parts of the first.
JOINING = ("outer", "dot", "matmul", "multiply", "add", "subtract", "divide", "power", "maximum", "minimum")
JOINING_PARTS = ("concatenate", "stack", "vstack", "hstack")
