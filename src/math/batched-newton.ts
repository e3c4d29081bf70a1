/**
 * Many L2-regularised linear fits (logistic or least squares) on one matrix, solved together.
 *
 *   minimise over v, c:  Σ_i s_i·loss(x_i·v + c, y_i) + ½·strength·Σ_k shape_k·v_k²        (c is not penalised)
 *
 * Each problem runs its own truncated Newton method, whose inner solver is conjugate gradients preconditioned by
 * h·XᵀX + penalty (h = mean curvature of that problem): close to its Hessian while probabilities are soft, and some times
 * more inner steps where they saturate. What is shared is the work: in every round all problems that want X·p or Xᵀ·u
 * get theirs from one product, so the matrix is read once per round for all of them, and a problem that has finished
 * makes room for the next one waiting.
 *
 * Products are float32. A problem is called converged only on a gradient computed in float64 from its own v and c: where
 * that shows a gap above the tolerance, the Newton iteration goes on from it, which is iterative refinement.
 *
 * The estimated gap is half the squared Newton decrement, ½·gᵀH⁻¹g over the objective: exact up to third order near the
 * optimum, and bounded from above by the preconditioned norm over the smallest Ritz value of the last inner solve.
 */
import type { Gemm, Gemm64, Undefined } from '../types.ts';
import { exactGradients } from './exact-gradient.ts';
import { referenceGemm64 } from './gemm.ts';
import { logisticRows } from './row-loss.ts';
import type { Convergence } from './newton.ts';
import {
  convergenceOf,
  type LinearProblem,
  openSlot,
  type Slot,
  takeGradient,
  takeInnerProduct,
  takePreconditioned,
  takeStep,
} from './newton-slot.ts';
import type { Preconditioner } from './preconditioner.ts';
import type { RowBlocks } from './row-blocks.ts';
import { classBalance } from './sparse.ts';

export interface LinearSolution {
  /** [columns] */
  readonly v: Float64Array;
  readonly c: number;
  readonly convergence: Convergence;
}

export interface BatchedNewtonOptions {
  readonly gemm: Gemm;
  /** Absent: plain loops, about ten times slower. */
  readonly gemm64?: Gemm64;
  readonly precondition: Preconditioner;
  /** Estimated relative gap at which a problem stops. */
  readonly tolerance?: number;
  /** Newton steps of one problem. */
  readonly maxIterations?: number;
  /** Inner steps of one Newton step. */
  readonly maxInner?: number;
  /** Problems in flight: each takes about 28 bytes per row and 40 per column. */
  readonly slots?: number;
}

/** A tenth of the gap that the fits promise (1e-6): one more inner step buys it. */
export const DEFAULT_TOLERANCE = 1e-7;

/** Problems that wait for their float64 gradient are taken together, since each walk over the rows converts them. */
const EXACT_BATCH = 16;

/** Solves all problems; answers in their order. One class only is undefined with the reason; nothing else is. */
export async function solveLinearBatch(
  x: RowBlocks,
  problems: readonly LinearProblem[],
  options: BatchedNewtonOptions,
): Promise<readonly (LinearSolution | Undefined)[]> {
  const { tolerance = DEFAULT_TOLERANCE, maxIterations = 100, maxInner = 400, slots = 64 } = options;
  const limits = { tolerance, maxIterations, maxInner };
  const results: (LinearSolution | Undefined)[] = [];
  // Weak penalties take most rounds, so they start first and soft problems fill the room beside them.
  const waiting = problems
    .map((_, index) => index)
    .sort((a, b) => problems[b].strength - problems[a].strength || b - a);
  let active: Slot[] = [];
  while (active.length > 0 || waiting.length > 0) {
    while (active.length < slots && waiting.length > 0) {
      const index = waiting.pop() ?? 0;
      const balance = classBalance(problems[index].labels, problems[index].weights);
      if ('undefinedBecause' in balance) results[index] = balance;
      else active.push(openSlot(index, problems[index], problems[index].loss === logisticRows ? balance.logOdds : 0));
    }
    await exactRound(x, active, options.gemm64 ?? referenceGemm64);
    await productRound(x, active, options.gemm);
    await preconditionRound(x, active, options.precondition, limits);
    for (const slot of active) {
      if (slot.phase === 'done') {
        results[slot.index] = { v: slot.v, c: slot.c, convergence: convergenceOf(slot, tolerance) };
      }
    }
    active = active.filter((slot) => slot.phase !== 'done');
  }
  return results;
}

async function exactRound(x: RowBlocks, active: readonly Slot[], gemm64: Gemm64): Promise<void> {
  const slots = active.filter((slot) => slot.phase === 'needs-exact');
  if (slots.length === 0 || (slots.length < EXACT_BATCH && slots.length < active.length)) return;
  const points = slots.map(({ v, c, problem: { loss, labels, weights } }) => ({ v, c, loss, labels, weights }));
  const exact = await exactGradients(x, points, gemm64);
  slots.forEach((slot, at) => {
    const { gradient, gradientC, loss, z } = exact[at];
    const { strength, shape } = slot.problem;
    let square = 0;
    for (let k = 0; k < shape.length; k += 1) square += strength * shape[k] * slot.v[k] * slot.v[k];
    slot.margins.z.set(z);
    slot.value = loss + square / 2;
    takeGradient(slot, gradient, gradientC, true);
  });
}

/** One walk over the rows: X·direction for the inner solvers, Xᵀ·(their curvature-weighted margins) and Xᵀ·residual. */
async function productRound(x: RowBlocks, active: readonly Slot[], gemm: Gemm): Promise<void> {
  const inner = active.filter((slot) => slot.phase === 'inner');
  const gradient = active.filter((slot) => slot.phase === 'needs-gradient');
  const all = [...inner, ...gradient];
  if (all.length === 0) return;
  const d = x.columns;
  const directions = new Float32Array(inner.length * d);
  inner.forEach((slot, at) => directions.set(slot.direction, at * d));
  const products = all.map(() => new Float64Array(d));
  const sums = new Float64Array(all.length);
  for await (const { start, count, data } of x.blocks()) {
    const weighted = new Float32Array(all.length * count);
    if (inner.length > 0) {
      const margins = await gemm(directions, data, inner.length, count, d, { transposeB: true });
      inner.forEach((slot, at) => {
        const { curvature, direction } = slot.margins;
        let sum = 0;
        for (let i = 0, from = at * count; i < count; i += 1) {
          const margin = margins[from + i] + slot.directionC;
          const u = margin * curvature[start + i];
          direction[start + i] = margin;
          weighted[from + i] = u;
          sum += u;
        }
        sums[at] += sum;
      });
    }
    gradient.forEach((slot, index) => {
      const at = inner.length + index;
      const part = slot.margins.residual.subarray(start, start + count);
      weighted.set(part, at * count);
      for (let i = 0; i < count; i += 1) sums[at] += part[i];
    });
    const part = await gemm(weighted, data, all.length, d, count);
    products.forEach((product, at) => {
      for (let k = 0, from = at * d; k < d; k += 1) product[k] += part[from + k];
    });
  }
  inner.forEach((slot, at) => takeInnerProduct(slot, products[at], sums[at]));
  gradient.forEach((slot, index) => {
    takeGradient(slot, products[inner.length + index], sums[inner.length + index], false);
  });
}

async function preconditionRound(
  x: RowBlocks,
  active: readonly Slot[],
  precondition: Preconditioner,
  limits: { readonly tolerance: number; readonly maxIterations: number; readonly maxInner: number },
): Promise<void> {
  const slots = active.filter((slot) => slot.phase === 'needs-start' || slot.phase === 'needs-direction');
  if (slots.length === 0) return;
  const d = x.columns;
  const residuals = new Float32Array(slots.length * d);
  slots.forEach((slot, at) => residuals.set(slot.residual, at * d));
  const solved = await precondition(
    residuals,
    slots.map(({ curvature, problem }) => ({
      curvature: Math.max(curvature / x.rows, 1e-30),
      strength: problem.strength,
    })),
  );
  slots.forEach((slot, at) => {
    if (takePreconditioned(slot, solved.subarray(at * d, (at + 1) * d), limits)) takeStep(slot, limits);
  });
}
