"""Reference optima of L2-regularised fits. Writes test/golden/logistic/*.json.

    python test/golden/make_logistic.py

Coefficients are scikit-learn's (newton-cholesky, or lbfgs where it names another), run to a tolerance of 1e-12 in float64
on standardised features; `objective` is the optimum of the same function by Newton's method written out here in float64,
and each coefficient set is checked against it. Needs the packages of bench/requirements.txt.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import sklearn
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

warnings.filterwarnings("ignore")
FOLDER = Path(__file__).parent / "logistic"
FOLDER.mkdir(exist_ok=True)
CS = [1e-4, 1e-2, 1.0, 1e2, 1e4]


def objective(z, y, s, c, w, b):
    t = np.where(y > 0, -1, 1) * (z @ w + b)
    return float((s * np.logaddexp(0, t)).sum() + w @ w / (2 * c))


def newton(z, y, s, c):
    """Damped Newton with exact Hessians on [w, b]."""
    a = np.hstack([z, np.ones((len(z), 1))])
    penalty = np.append(np.full(z.shape[1], 1 / c), 0.0)
    v = np.zeros(a.shape[1])
    f = lambda v: objective(z, y, s, c, v[:-1], v[-1])
    for _ in range(500):
        p = 1 / (1 + np.exp(-np.clip(a @ v, -700, 700)))
        g = a.T @ (s * (p - y)) + penalty * v
        h = (a.T * (s * p * (1 - p))) @ a + np.diag(penalty)
        h[-1, -1] += 1e-14 * max(1.0, h[-1, -1])
        step = np.linalg.solve(h, -g)
        decrement = -g @ step
        if decrement < 1e-15 * f(v):
            return v, f(v)
        t = 1.0
        while f(v + t * step) > f(v) - 1e-4 * t * decrement and t > 1e-12:
            t /= 2
        v = v + t * step
    raise RuntimeError("no convergence")


def problem(name, x, y, weights=None, note=""):
    x = x.astype(np.float32)
    s = np.ones(len(y)) if weights is None else weights
    scaler = StandardScaler().fit(x.astype(np.float64), sample_weight=weights)
    z = scaler.transform(x.astype(np.float64))
    fits = []
    for c in CS:
        v, best = newton(z, y, s, c)
        model = LogisticRegression(C=c, tol=1e-12, max_iter=100_000, solver="newton-cholesky")
        model.fit(z, y, sample_weight=weights)
        theirs = objective(z, y, s, c, model.coef_[0], model.intercept_[0])
        assert theirs <= best * (1 + 1e-9), (name, c, theirs, best)
        ridge = Ridge(alpha=1 / c, solver="svd").fit(z, 2.0 * y - 1, sample_weight=weights)
        fits.append(
            dict(
                C=c,
                objective=min(best, theirs),
                weights=v[:-1].tolist(),
                bias=float(v[-1]),
                sklearnObjective=theirs,
                ridgeWeights=ridge.coef_.tolist(),
                ridgeBias=float(ridge.intercept_),
            )
        )
    data = dict(
        source=f"scikit-learn {sklearn.__version__}, NumPy {np.__version__}",
        note=note,
        rows=int(x.shape[0]),
        columns=int(x.shape[1]),
        x=[float(f"{v:.9g}") for v in x.ravel()],
        labels=y.astype(int).tolist(),
        weights=None if weights is None else weights.tolist(),
        mean=scaler.mean_.tolist(),
        scale=scaler.scale_.tolist(),
        fits=fits,
    )
    (FOLDER / f"{name}.json").write_text(json.dumps(data) + "\n")


def noisy(rng, z, w):
    return (rng.random(len(z)) < 1 / (1 + np.exp(-(z @ w)))).astype(float)


rng = np.random.default_rng(7)
z = rng.standard_normal((60, 6))
problem("soft", 3 + z * [1, 10, 100, 0.1, 5, 1], noisy(rng, z, [1, -1, 0.5, 0, 0, 1]), note="columns of unlike scale")

z = rng.standard_normal((40, 5))
problem("separable", z, (z @ [2, -1, 0, 0, 0] > 0).astype(float), note="perfectly separable: finite only by the penalty")

z = rng.standard_normal((50, 4))
z = np.hstack([z, z[:, :2] @ [[1.0], [1.0]], 2 * z[:, :1], np.full((50, 1), 7.0)])
problem("collinear", z, noisy(rng, z, [1, -1, 0, 0, 0, 0, 0]), note="sums and multiples of columns, and a constant one")

z = rng.standard_normal((18, 45))
problem("wide", z, noisy(rng, z[:, :3], [1.5, -1, 1]), note="fewer rows than columns")

z = rng.standard_normal((48, 5))
problem(
    "weighted",
    z,
    noisy(rng, z, [1, 1, 0, -1, 0]),
    weights=rng.choice([0.25, 1.0, 2.0, 3.0], size=48),
    note="sample weights, in the standardisation too",
)

z = np.repeat(rng.standard_normal((12, 30)), 2, axis=0)
y = noisy(rng, z[:, :3], [1.5, -1, 1])
y[1::4] = 1 - y[::4][: len(y[1::4])]
problem("twins", z, y, note="every row twice, half of them with contradicting labels; fewer distinct rows than columns")

z = rng.standard_normal((60, 10)) * (np.arange(1, 11) ** -1.5)
q, _ = np.linalg.qr(rng.standard_normal((10, 10)))
z = 500 + 5 * (z @ q)
problem("offset", z, noisy(rng, (z - 500)[:, :3], [0.5, -0.5, 0.3]), note="means a hundred deviations from zero, power-law spectrum")
