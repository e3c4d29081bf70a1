/**
 * Smallest Ritz value of the operator that a conjugate-gradient solve was run on, from its coefficients: the smallest
 * eigenvalue of the Lanczos tridiagonal matrix with diagonal 1/α_k + β_{k−1}/α_{k−1} and off-diagonal √β_k/α_k
 * (Golub & Van Loan, section 10.2). It bounds the smallest eigenvalue in the space searched from above.
 * @param betas one fewer than alphas
 */
export function smallestRitzValue(alphas: readonly number[], betas: readonly number[]): number {
  const n = alphas.length;
  if (n === 0) return 1;
  const diagonal = alphas.map((alpha, k) => 1 / alpha + (k > 0 ? betas[k - 1] / alphas[k - 1] : 0));
  const offSquare = betas.map((beta, k) => beta / (alphas[k] * alphas[k]));
  // Bisection on the Sturm count: the number of negative pivots of T − x·I is the number of eigenvalues below x.
  const hasBelow = (x: number): boolean => {
    let pivot = diagonal[0] - x;
    if (pivot < 0) return true;
    for (let k = 1; k < n; k += 1) {
      pivot = diagonal[k] - x - offSquare[k - 1] / Math.max(pivot, 1e-300);
      if (pivot < 0) return true;
    }
    return false;
  };
  let low = 0;
  let high = Math.min(...diagonal);
  for (let i = 0; i < 60 && high - low > 1e-3 * high; i += 1) {
    const middle = (low + high) / 2;
    if (hasBelow(middle)) high = middle;
    else low = middle;
  }
  return low > 0 ? low : high * 1e-3;
}
