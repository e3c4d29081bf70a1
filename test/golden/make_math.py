"""Reference numbers for src/math, computed by scikit-learn and SciPy. Writes test/golden/math/*.json.

    python test/golden/make_math.py

Needs the packages of bench/requirements.txt. Data are made from fixed seeds, so a rerun writes the same files.
"""

import json
from pathlib import Path

import numpy as np
import scipy
import sklearn
from scipy.sparse import csr_matrix
from scipy.stats import rankdata
from sklearn.calibration import _sigmoid_calibration
from sklearn.isotonic import isotonic_regression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    log_loss,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

FOLDER = Path(__file__).parent / "math"
FOLDER.mkdir(exist_ok=True)
SOURCE = f"scikit-learn {sklearn.__version__}, NumPy {np.__version__}, SciPy {scipy.__version__}"


def write(name, **fields):
    text = json.dumps({"source": SOURCE, **fields}, indent=1)
    (FOLDER / f"{name}.json").write_text(text + "\n")


def ranking():
    rng = np.random.default_rng(1)
    cases = []
    for n, decimals in [(12, 1), (60, 1), (200, 6)]:
        labels = (rng.random(n) < 0.35).astype(int)
        scores = np.round(rng.normal(size=n) + labels, decimals)
        weights = rng.integers(1, 5, size=n)
        fpr, tpr, thresholds = roc_curve(labels, scores, drop_intermediate=False)
        precision, recall, _ = precision_recall_curve(labels, scores)
        cases.append(
            dict(
                scores=scores.tolist(),
                labels=labels.tolist(),
                weights=weights.tolist(),
                midranks=rankdata(scores).tolist(),
                auroc=roc_auc_score(labels, scores),
                weightedAuroc=roc_auc_score(labels, scores, sample_weight=weights),
                partialAuroc={str(m): roc_auc_score(labels, scores, max_fpr=m) for m in (0.05, 0.1, 0.5)},
                averagePrecision=average_precision_score(labels, scores),
                roc=dict(x=fpr.tolist(), y=tpr.tolist(), thresholds=thresholds[1:].tolist()),
                precisionRecall=dict(x=recall[::-1].tolist(), y=precision[::-1].tolist()),
            )
        )
    write("ranking", cases=cases)


def scores():
    rng = np.random.default_rng(2)
    labels = (rng.random(80) < 0.4).astype(int)
    p = np.clip(1 / (1 + np.exp(-rng.normal(size=80) - labels)), 1e-6, 1 - 1e-6)
    p[3] = 0.0
    p[4] = 1.0
    inside = np.ones(80, bool)
    inside[3:5] = False
    write(
        "proper-scores",
        probabilities=p.tolist(),
        labels=labels.tolist(),
        brier=brier_score_loss(labels, p),
        insideRows=np.flatnonzero(inside).tolist(),
        logLossInside=log_loss(labels[inside], p[inside]),
    )


def calibration():
    rng = np.random.default_rng(3)
    labels = (rng.random(120) < 0.3).astype(int)
    margins = np.round(3 * rng.normal(size=120) + 2 * labels, 2)
    # Its own sigmoid is 1 / (1 + exp(a·f + b)), with Platt's smoothed targets.
    a, b = _sigmoid_calibration(margins, labels)
    distinct, inverse = np.unique(margins, return_inverse=True)
    means = np.bincount(inverse, labels) / np.bincount(inverse)
    fitted = isotonic_regression(means, sample_weight=np.bincount(inverse), y_min=0, y_max=1)
    write(
        "calibration",
        margins=margins.tolist(),
        labels=labels.tolist(),
        platt=dict(slope=-a, intercept=-b),
        isotonic=dict(margins=distinct.tolist(), values=fitted.tolist()),
    )


def sparse():
    rng = np.random.default_rng(4)
    n, d = 60, 150
    dense = np.where(rng.random((n, d)) < 0.08, rng.random((n, d)), 0.0)
    dense /= np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-12)
    labels = (dense[:, :20].sum(1) + 0.2 * rng.normal(size=n) > 0.35).astype(int)
    weights = rng.choice([0.5, 1.0, 2.0], size=n)
    x = csr_matrix(dense)
    fits = []
    for c in (0.01, 1.0, 100.0, 10000.0):
        for weighted in (False, True):
            model = LogisticRegression(C=c, tol=1e-12, max_iter=10000, solver="newton-cholesky")
            model.fit(dense, labels, sample_weight=weights if weighted else None)
            fits.append(
                dict(C=c, weighted=weighted, weights=model.coef_[0].tolist(), bias=float(model.intercept_[0]))
            )
    write(
        "sparse-logistic",
        rows=n,
        columns=d,
        indptr=x.indptr.tolist(),
        indices=x.indices.tolist(),
        values=x.data.tolist(),
        labels=labels.tolist(),
        weights=weights.tolist(),
        fits=fits,
    )


ranking()
scores()
calibration()
sparse()
