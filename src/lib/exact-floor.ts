/**
 * ⌊rate · count⌋ for a rate as a person wrote it: 0.29 of 100 is 29, although 0.29 * 100 is 28.999999999999996 in binary.
 * The shortest decimal that reads back as the same double is taken for what was written.
 * @param rate ≥ 0 and finite @param count a whole number ≥ 0
 */
export function exactFloor(rate: number, count: number): number {
  if (!Number.isFinite(rate) || rate < 0 || !Number.isSafeInteger(count) || count < 0) {
    throw new RangeError(`expected a rate ≥ 0 and a count ≥ 0, got ${rate} and ${count}`);
  }
  const [mantissa, exponent = '0'] = rate.toString().split('e');
  const [whole, fraction = ''] = mantissa.split('.');
  const places = fraction.length - Number(exponent);
  const product = BigInt(whole + fraction) * BigInt(count);
  return Number(places >= 0 ? product / 10n ** BigInt(places) : product * 10n ** BigInt(-places));
}
