/**
 * One penalised linear fit on its way through `solveLinearBatch`: a truncated Newton iteration cut at the points where
 * it needs a product with the matrix or the preconditioner, so that many can share those products.
 *
 *   needs-gradient ──product──▶ needs-start ──precondition──▶ inner ──product──▶ needs-direction ──precondition──▶ inner …
 *   inner (solved) ──line search──▶ needs-gradient, or near the optimum ──▶ needs-exact ──float64──▶ needs-start ──▶ done
 */
import { smallestRitzValue } from './lanczos.ts';
import { type Margins, moveBy, openMargins, type RowLoss } from './row-loss.ts';
import type { Convergence } from './newton.ts';

export interface LinearProblem {
  readonly loss: RowLoss;
  /** [rows] 0 / 1; anything where the weight is 0. */
  readonly labels: Uint8Array;
  /** [rows] ≥ 0. Problems on the same rows should share one array. */
  readonly weights: Float64Array;
  /** Penalty of v: ½ · strength · Σ shape_k · v_k². strength = 1/C, shape = square of each column's unit, > 0. */
  readonly strength: number;
  readonly shape: Float64Array;
}

type Phase = 'needs-gradient' | 'needs-start' | 'inner' | 'needs-direction' | 'needs-exact' | 'done';

export interface Slot {
  readonly index: number;
  readonly problem: LinearProblem;
  phase: Phase;
  /** The point: margin = x·v + c. Vectors of the inner solver carry their intercept part in the field ending in C. */
  readonly v: Float64Array;
  c: number;
  /** Minus the gradient when an inner solve starts, then what is left of it. */
  readonly residual: Float64Array;
  residualC: number;
  readonly step: Float64Array;
  stepC: number;
  readonly direction: Float64Array;
  directionC: number;
  readonly margins: Margins;
  /** −gradient · step so far: the squared Newton decrement when solved. */
  decrement: number;
  rz: number;
  startRz: number;
  /** Coefficients of the inner solve, for its Ritz values. */
  alphas: number[];
  betas: number[];
  /** Σ curvature over rows. */
  curvature: number;
  value: number;
  relativeGap: number;
  /** Smallest Ritz value of the preconditioned Hessian: a bound on how far the preconditioner overstates curvature. */
  ritz: number;
  exact: boolean;
  iterations: number;
  products: number;
  stalls: number;
}

/**
 * Inner solves stop when their residual, in the preconditioner's norm, is this share of its start: loosely while the step
 * will be cut or the curvature will change anyway, tightly where the next gradient costs a walk in float64.
 */
const forcingAt = (relativeGap: number): number => (relativeGap > FAR ? LOOSE : TIGHT);
const [FAR, LOOSE, TIGHT] = [1e-3, 0.5, 0.1];

export function openSlot(index: number, problem: LinearProblem, start: number): Slot {
  const columns = problem.shape.length;
  const margins = openMargins(problem.loss, problem.labels, problem.weights, start);
  const { curvature } = problem.loss.refresh(margins);
  return {
    index,
    problem,
    phase: 'needs-gradient',
    v: new Float64Array(columns),
    c: start,
    residual: new Float64Array(columns),
    residualC: 0,
    step: new Float64Array(columns),
    stepC: 0,
    direction: new Float64Array(columns),
    directionC: 0,
    margins,
    decrement: 0,
    rz: 0,
    startRz: 0,
    alphas: [],
    betas: [],
    curvature,
    value: problem.loss.valueAt(margins, 0),
    relativeGap: Infinity,
    ritz: 1,
    exact: false,
    iterations: 0,
    products: 0,
    stalls: 0,
  };
}

/** Takes Xᵀ·residual of the current point. @param product the row of the slot in the product */
export function takeGradient(slot: Slot, product: Float64Array, residualSum: number, exact: boolean): void {
  const { residual, v, problem } = slot;
  for (let k = 0; k < v.length; k += 1) residual[k] = -product[k] - problem.strength * problem.shape[k] * v[k];
  slot.residualC = -residualSum;
  slot.exact = exact;
  slot.phase = 'needs-start';
}

/** Takes X·direction (in margins.direction) and Xᵀ·(curvature ∘ that): one step of the inner solver. */
export function takeInnerProduct(slot: Slot, product: Float64Array, weightedSum: number): void {
  const { direction, step, residual, problem, margins } = slot;
  slot.products += 1;
  let curvature = slot.directionC * weightedSum;
  for (let k = 0; k < direction.length; k += 1) {
    product[k] += problem.strength * problem.shape[k] * direction[k];
    curvature += direction[k] * product[k];
  }
  slot.phase = 'needs-direction';
  if (!(curvature > 0)) {
    // Every probability along the direction is saturated: what was found so far is the step.
    slot.startRz = Infinity;
    return;
  }
  const alpha = slot.rz / curvature;
  for (let k = 0; k < direction.length; k += 1) {
    step[k] += alpha * direction[k];
    residual[k] -= alpha * product[k];
  }
  slot.stepC += alpha * slot.directionC;
  slot.residualC -= alpha * weightedSum;
  const marginStep = margins.step;
  const marginDirection = margins.direction;
  for (let i = 0; i < marginStep.length; i += 1) marginStep[i] += alpha * marginDirection[i];
  // α·rz is exactly what this step adds to gᵀH⁻¹g.
  slot.decrement += alpha * slot.rz;
  slot.alphas.push(alpha);
}

/**
 * Takes the preconditioned residual: starts an inner solve or turns its direction.
 * @returns true when the slot wants the line search (the inner solve is done)
 */
export function takePreconditioned(
  slot: Slot,
  solved: Float32Array,
  limits: { readonly tolerance: number; readonly maxInner: number },
): boolean {
  const { direction, residual } = slot;
  const solvedC = slot.residualC / Math.max(slot.curvature, 1e-300);
  let rz = slot.residualC * solvedC;
  for (let k = 0; k < residual.length; k += 1) rz += residual[k] * solved[k];
  if (slot.phase === 'needs-start') {
    // gᵀH⁻¹g ≤ gᵀM⁻¹g / (smallest eigenvalue of M⁻¹H): enough to stop without another inner solve.
    if (slot.exact) {
      const bound = rz / (2 * slot.ritz * slot.value);
      if (bound <= limits.tolerance) {
        slot.relativeGap = bound;
        slot.phase = 'done';
        return false;
      }
    }
    direction.set(solved);
    slot.directionC = solvedC;
    slot.step.fill(0);
    slot.stepC = 0;
    slot.margins.step.fill(0);
    slot.decrement = 0;
    slot.alphas = [];
    slot.betas = [];
    slot.rz = rz;
    slot.startRz = rz;
    slot.phase = rz > 0 ? 'inner' : 'needs-exact';
    return false;
  }
  const beta = rz / slot.rz;
  slot.rz = rz;
  if (!(rz > forcingAt(slot.relativeGap) ** 2 * slot.startRz) || slot.alphas.length >= limits.maxInner) return true;
  slot.betas.push(beta);
  for (let k = 0; k < direction.length; k += 1) direction[k] = solved[k] + beta * direction[k];
  slot.directionC = solvedC + beta * slot.directionC;
  slot.phase = 'inner';
  return false;
}

/** Moves to the best point along the step. Near the optimum the next gradient is asked for in float64. */
export function takeStep(slot: Slot, limits: { readonly tolerance: number; readonly maxIterations: number }): void {
  const { v, step, problem, margins, decrement } = slot;
  slot.ritz = smallestRitzValue(slot.alphas, slot.betas);
  let cross = 0;
  let stepSquare = 0;
  let square = 0;
  for (let k = 0; k < v.length; k += 1) {
    const unit = problem.strength * problem.shape[k];
    square += unit * v[k] * v[k];
    cross += unit * v[k] * step[k];
    stepSquare += unit * step[k] * step[k];
  }
  // Rounding of the sum over rows: less than this cannot be told from no change.
  const noise = 1e-13 * Math.abs(slot.value);
  let length = 1;
  let value = 0;
  for (;;) {
    value = margins.loss.valueAt(margins, length) + 0.5 * square + length * (cross + 0.5 * length * stepSquare);
    if (value <= slot.value - 1e-4 * length * decrement + noise) break;
    length /= 2;
    if (length < 1e-9) {
      length = 0;
      value = slot.value;
      slot.stalls += 1;
      break;
    }
  }
  for (let k = 0; k < v.length; k += 1) v[k] += length * step[k];
  slot.c += length * slot.stepC;
  slot.curvature = moveBy(margins, length).curvature;
  // What the solve found, and a bound on what it left.
  const gap = slot.alphas.length === 0 ? Infinity : (decrement + slot.rz / slot.ritz) / 2 / slot.value;
  slot.value = value;
  slot.iterations += 1;
  slot.relativeGap = gap;
  if (slot.alphas.length === 0) slot.stalls += 1;
  const near = length === 1 && gap <= 10 * limits.tolerance;
  if (slot.iterations >= limits.maxIterations || slot.stalls > 1) slot.phase = 'done';
  else slot.phase = near || slot.stalls > 0 ? 'needs-exact' : 'needs-gradient';
}

export function convergenceOf(slot: Slot, tolerance: number): Convergence {
  return {
    converged: slot.relativeGap <= tolerance,
    iterations: slot.iterations,
    products: slot.products,
    objective: slot.value,
    relativeGap: slot.relativeGap,
  };
}
