"""The other side of bench/probe.ts: makes its data, times scikit-learn, and judges both by one objective.

    probe_rival.py make FOLDER N D SET SEED       x.f32 (row-major), y.u8
    probe_rival.py fit FOLDER N D MAX_SECONDS     scikit-learn's time and the gaps of both; ours.f64 holds our [50 × (d + 1)]

Data like activations: standardised columns; `power` mixes independent directions whose variances fall as 1/k, `independent`
leaves them alone. Labels are drawn from a logistic model whose direction follows the variances (margins of standard
deviation 2), then a tenth of them is flipped.
"""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import sklearn
from scipy.fft import dct
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import PredefinedSplit

warnings.filterwarnings("ignore")
FOLDS = 5
CS = np.logspace(-4, 4, 10)
GAP = 1e-6
TOLERANCES = [1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10]


def make(folder, n, d, kind, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d), dtype=np.float32)
    direction = rng.standard_normal(d).astype(np.float32)
    if kind == "power":
        deviation = (np.arange(1, d + 1) ** -0.5).astype(np.float32)
        direction *= deviation
    margin = x @ direction
    margin *= 2 / margin.std()
    if kind == "power":
        x *= deviation
        for _ in range(2):  # an orthogonal mixing that costs n·d·log d
            x = x[:, rng.permutation(d)] * rng.choice(np.array([-1, 1], np.float32), d)
            x = dct(x, norm="ortho", axis=1, overwrite_x=True)
    x -= x.mean(0)
    x /= x.std(0)
    y = rng.random(n) < expit(margin)
    y ^= rng.random(n) < 0.1
    x.astype(np.float32).tofile(folder / "x.f32")
    y.astype(np.uint8).tofile(folder / "y.u8")


def objectives(x, y, fold, coefficients):
    """[folds × Cs] of the function that both minimise, in float64; coefficients [folds × Cs × (d + 1)], intercept last."""
    out = np.empty((FOLDS, len(CS)))
    for k in range(FOLDS):
        train = fold != k
        w = coefficients[k]
        z = x[train] @ w[:, :-1].T + w[:, -1]
        t = np.where(y[train] > 0, -1.0, 1.0)[:, None] * z
        out[k] = np.logaddexp(0, t).sum(0) + (w[:, :-1] ** 2).sum(1) / (2 * CS)
    return out


def path(x, y, fold, k, tol, deadline):
    """One fold's path over C with warm starts, which is what LogisticRegressionCV does for each fold."""
    train = fold != k
    model = LogisticRegression(tol=tol, max_iter=1_000_000, warm_start=True)
    out = []
    for c in CS:
        if time.perf_counter() > deadline:
            return None
        model.set_params(C=c).fit(x[train], y[train])
        out.append(np.append(model.coef_[0], model.intercept_[0]))
    return np.array(out)


def fit(folder, n, d, max_seconds):
    x = np.fromfile(folder / "x.f32", np.float32).reshape(n, d).astype(np.float64)
    y = np.fromfile(folder / "y.u8", np.uint8).astype(np.float64)
    fold = np.arange(n) % FOLDS
    ours = np.fromfile(folder / "ours.f64", np.float64).reshape(FOLDS, len(CS), d + 1)
    best = objectives(x, y, fold, ours)
    tight = np.fromfile(folder / "tight.f64", np.float64).reshape(FOLDS, len(CS), d + 1)
    reference = np.minimum(best, objectives(x, y, fold, tight))
    result = dict(version=sklearn.__version__, seconds=None, tol=None, rivalGap=None, tried=[])
    deadline = time.perf_counter() + max_seconds
    reached = False
    for tol in TOLERANCES:
        # One fold's path tells whether a tolerance can reach the gap; only then all of it is timed.
        start = time.perf_counter()
        coefficients = path(x, y, fold, 0, tol, deadline)
        seconds = time.perf_counter() - start
        if coefficients is None:
            result["tried"].append(dict(tol=tol, foldSeconds=seconds, gap=None))
            break
        value = objectives(x, y, fold, np.repeat(coefficients[None], FOLDS, 0))[0]
        gap = float(((value - reference[0]) / reference[0]).max())
        result["tried"].append(dict(tol=tol, foldSeconds=seconds, gap=gap))
        if gap > GAP:
            continue
        start = time.perf_counter()
        model = LogisticRegressionCV(
            Cs=CS, cv=PredefinedSplit(fold), tol=tol, max_iter=1_000_000, refit=False, scoring="accuracy"
        ).fit(x, y)
        seconds = time.perf_counter() - start
        paths = model.coefs_paths_
        paths = np.asarray(next(iter(paths.values())) if isinstance(paths, dict) else paths)
        value = objectives(x, y, fold, paths.reshape(FOLDS, len(CS), d + 1))
        reference = np.minimum(reference, value)
        gap = float(((value - reference) / reference).max())
        result.update(seconds=seconds, tol=tol, rivalGap=gap)
        reached = gap <= GAP
        if reached:
            break
    if not reached and result["tried"]:
        # All folds would have taken at least this long at the last tolerance tried.
        result["atLeastSeconds"] = FOLDS * result["tried"][-1]["foldSeconds"]
    result["gap"] = float(((best - reference) / reference).max())
    print(json.dumps(result))


command, folder, n, d, *rest = sys.argv[1:]
if command == "make":
    make(Path(folder), int(n), int(d), rest[0], int(rest[1]))
else:
    fit(Path(folder), int(n), int(d), float(rest[0]))
