/**
 * One token from logits by inverse CDF: `uniform` in [0, 1) is the only randomness, and the tokens stand in the order of
 * their ids, so that the same uniform picks the same token from similar distributions (matched worlds).
 *
 * @param logits [vocabulary]
 * @param temperature 0 = the largest logit, the lowest id among equals
 * @param topP keeps the most probable tokens until their mass reaches it (the token that reaches it included); 1 = all
 * @throws RangeError when no logit is finite
 */
export function sampleToken(logits: Float32Array, temperature: number, topP: number, uniform: number): number {
  let best = -1;
  for (let i = 0; i < logits.length; i++) {
    const v = logits[i];
    if (v > (best < 0 ? -Infinity : logits[best])) best = i;
  }
  if (best < 0 || !Number.isFinite(logits[best])) {
    throw new RangeError(`expected finite logits, got a largest of ${best < 0 ? NaN : logits[best]}`);
  }
  if (temperature === 0) return best;
  const top = logits[best];
  const weights = new Float64Array(logits.length);
  let total = 0;
  for (let i = 0; i < logits.length; i++) {
    const w = Math.exp((logits[i] - top) / temperature);
    weights[i] = w >= 0 ? w : 0; // NaN has no mass
    total += weights[i];
  }
  if (topP < 1) total = keepNucleus(weights, total, topP);
  const target = uniform * total;
  let sum = 0;
  let last = best;
  for (let i = 0; i < weights.length; i++) {
    const w = weights[i];
    if (w === 0) continue;
    sum += w;
    last = i;
    if (target < sum) return i;
  }
  return last; // rounding left the target at the very end
}

/** Sets the weights outside the nucleus to 0 and returns the mass that is left. */
function keepNucleus(weights: Float64Array, total: number, topP: number): number {
  // What lies below this cannot be needed: all of it together is less than the mass that may be dropped.
  const floor = ((1 - topP) * total) / weights.length;
  const candidates: number[] = [];
  for (let i = 0; i < weights.length; i++) if (weights[i] >= floor) candidates.push(i);
  candidates.sort((a, b) => weights[b] - weights[a] || a - b);
  let mass = 0;
  let count = 0;
  while (count < candidates.length && (count === 0 || mass < topP * total)) mass += weights[candidates[count++]];
  const kept = new Set(candidates.slice(0, count));
  let left = 0;
  for (let i = 0; i < weights.length; i++) {
    if (kept.has(i)) left += weights[i];
    else weights[i] = 0;
  }
  return left;
}
