/**
 * Logistic loss in forms that neither overflow nor cancel.
 *
 *   loss(z, y) = log(1 + exp(z)) − y·z = softplus((1 − 2y)·z),   y ∈ {0, 1}, z the margin (log-odds)
 *   d loss / dz = sigmoid(z) − y,   d² loss / dz² = sigmoid(z)·(1 − sigmoid(z))
 *
 * The objective of every fit here is scikit-learn's: Σ s_i·loss(z_i, y_i) + ‖w‖²/(2C), z = X·w + b, b unpenalised.
 */

/** 1 / (1 + exp(−z)) */
export function sigmoid(z: number): number {
  if (z >= 0) return 1 / (1 + Math.exp(-z));
  const e = Math.exp(z);
  return e / (1 + e);
}

/** log(1 + exp(z)) */
export function softplus(z: number): number {
  return Math.max(z, 0) + Math.log1p(Math.exp(-Math.abs(z)));
}

/** log(p / (1 − p)); ±Infinity at the ends. */
export function logit(p: number): number {
  return Math.log(p) - Math.log1p(-p);
}

/** Loss of one row at margin z. @param y 0 or 1 */
export function logisticLoss(z: number, y: number): number {
  return softplus(y === 0 ? z : -z);
}

/**
 * Loss, residual and curvature of all rows in one pass: one exponential each.
 * @param margins, labels, weights [rows]; weights null = all 1
 * @param residual [rows] receives s·(sigmoid(z) − y)
 * @param curvature [rows] receives s·sigmoid(z)·(1 − sigmoid(z))
 * @returns Σ s·loss
 */
export function logisticPass(
  margins: Float64Array,
  labels: ArrayLike<number>,
  weights: ArrayLike<number> | null,
  residual: Float64Array,
  curvature: Float64Array,
): number {
  let total = 0;
  for (let i = 0; i < margins.length; i += 1) {
    const s = weights === null ? 1 : weights[i];
    // t = margin in the direction of the wrong class: loss = softplus(t), residual = ± sigmoid(t).
    const positive = labels[i] !== 0;
    const t = positive ? -margins[i] : margins[i];
    const e = Math.exp(-Math.abs(t));
    const p = (t >= 0 ? 1 : e) / (1 + e);
    total += s * (Math.max(t, 0) + Math.log1p(e));
    residual[i] = positive ? -s * p : s * p;
    curvature[i] = (s * e) / ((1 + e) * (1 + e));
  }
  return total;
}
