/**
 * Truncated Newton method for a smooth, strictly convex function of a vector: the Newton system is solved by
 * preconditioned conjugate gradients only as far as it helps (Eisenstat & Walker 1996), and a backtracking line search
 * makes it safe far from the optimum, where saturated logistic losses overshoot.
 */

export interface SmoothFunction {
  readonly size: number;
  /** Value at w; fills `gradient`, and fixes w as the point of `hessianTimes` and `diagonal`. */
  evaluate(w: Float64Array, gradient: Float64Array): number;
  /** Hessian of the last evaluated point times v. */
  hessianTimes(v: Float64Array, out: Float64Array): void;
  /** Diagonal of that Hessian (or anything positive that resembles it): the preconditioner. */
  diagonal(out: Float64Array): void;
}

/** How far an optimiser came. Handed to the caller with every fit; nothing is called converged because time ran out. */
export interface Convergence {
  readonly converged: boolean;
  /** Newton (or quasi-Newton) steps. */
  readonly iterations: number;
  /** Products with the data or Hessian beside them. */
  readonly products: number;
  /** Objective at the answer. */
  readonly objective: number;
  /** Estimated (objective − optimum) / objective: half the Newton decrement, exact to third order at the optimum. */
  readonly relativeGap: number;
}

export interface NewtonOptions {
  /** Stops when the estimated relative gap is at most this. */
  readonly tolerance?: number;
  readonly maxIterations?: number;
}

/** Minimises from `start` (not changed). */
export function minimizeNewton(
  objective: SmoothFunction,
  start: Float64Array,
  { tolerance = 1e-10, maxIterations = 200 }: NewtonOptions = {},
): { readonly w: Float64Array; readonly convergence: Convergence } {
  const { size } = objective;
  const w = Float64Array.from(start);
  const gradient = new Float64Array(size);
  const trial = new Float64Array(size);
  const trialGradient = new Float64Array(size);
  let value = objective.evaluate(w, gradient);
  let products = 0;
  let iterations = 0;
  let forcing = 0.1;
  for (;;) {
    const solved = conjugateGradients(objective, gradient, forcing);
    products += solved.products;
    const { step, decrement } = solved;
    // ½·gᵀH⁻¹g is what a full Newton step still gains; a loose solve underestimates it by at most the forcing term.
    const relativeGap = decrement / 2 / (1 - forcing) / Math.max(Math.abs(value), Number.MIN_VALUE);
    const report = { iterations, products, objective: value, relativeGap };
    if (relativeGap <= tolerance) return { w, convergence: { converged: true, ...report } };
    if (iterations >= maxIterations) return { w, convergence: { converged: false, ...report } };
    let length = 1;
    let next = value;
    for (;;) {
      for (let j = 0; j < size; j += 1) trial[j] = w[j] + length * step[j];
      next = objective.evaluate(trial, trialGradient);
      if (next <= value - 1e-4 * length * decrement) break;
      length /= 2;
      if (length < 1e-10) {
        // The predicted gain is below the rounding of the value itself: nothing more can be had in double precision.
        objective.evaluate(w, gradient);
        return { w, convergence: { converged: relativeGap <= Math.max(tolerance, 1e-9), ...report } };
      }
    }
    forcing = Math.min(0.1, Math.max(1e-3, Math.sqrt(decrement / Math.max(Math.abs(value), decrement))));
    w.set(trial);
    gradient.set(trialGradient);
    value = next;
    iterations += 1;
  }
}

/** Solves H·step = −g until the residual, in the preconditioner's norm, is `forcing` of what it was. decrement = −gᵀ·step. */
function conjugateGradients(
  objective: SmoothFunction,
  gradient: Float64Array,
  forcing: number,
): { readonly step: Float64Array; readonly decrement: number; readonly products: number } {
  const { size } = objective;
  const diagonal = new Float64Array(size);
  objective.diagonal(diagonal);
  const step = new Float64Array(size);
  const residual = gradient.map((g) => -g);
  const z = residual.map((r, j) => r / diagonal[j]);
  const direction = Float64Array.from(z);
  const product = new Float64Array(size);
  let rz = dot(residual, z);
  const stop = forcing * forcing * rz;
  let products = 0;
  while (rz > stop && products < 10 * size + 10) {
    objective.hessianTimes(direction, product);
    products += 1;
    const curvature = dot(direction, product);
    if (!(curvature > 0)) break;
    const alpha = rz / curvature;
    for (let j = 0; j < size; j += 1) {
      step[j] += alpha * direction[j];
      residual[j] -= alpha * product[j];
      z[j] = residual[j] / diagonal[j];
    }
    const next = dot(residual, z);
    const beta = next / rz;
    rz = next;
    for (let j = 0; j < size; j += 1) direction[j] = z[j] + beta * direction[j];
  }
  return { step, decrement: -dot(gradient, step), products };
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += a[i] * b[i];
  return sum;
}
