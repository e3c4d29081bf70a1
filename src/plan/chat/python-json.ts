import { isJsonArray, isJsonNumber, isJsonObject } from '../../lib/json.ts';
import type { JsonValue } from '../../types.ts';

/** Python's repr of a float from its decimal lexeme: 1e16 → 1e+16, 1e-7 → 1e-07, 1.0 stays 1.0, 1e5 → 100000.0. */
export function pythonFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity';
  if (Object.is(value, -0)) return '-0.0';
  const [digits, exponentText] = value.toExponential().split('e') as [string, string];
  const exponent = Number(exponentText);
  if (exponent < -4 || exponent >= 16)
    return `${digits}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
  const plain = value.toString();
  const text = plain.includes('e')
    ? value.toFixed(Math.max(0, digits.replace(/[-.]/g, '').length - 1 - exponent))
    : plain;
  return text.includes('.') ? text : `${text}.0`;
}

export function pythonNumber(lexeme: string): string {
  if (lexeme === 'NaN' || lexeme === 'Infinity' || lexeme === '-Infinity') return lexeme;
  return /[.eE]/.test(lexeme) ? pythonFloat(Number(lexeme)) : lexeme === '-0' ? '0' : BigInt(lexeme).toString();
}

function pythonString(text: string): string {
  // json.dumps(ensure_ascii=False): like JSON.stringify, but lone surrogates stay as they are.
  return JSON.stringify(text).replace(/\\u(d[89a-f][0-9a-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** json.dumps(value, ensure_ascii=False) of the value that json.loads gave: ", " and ": ", order of the text. */
export function dumpsPython(value: JsonValue): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return pythonString(value);
  if (isJsonNumber(value)) return pythonNumber(value.lexeme);
  if (isJsonArray(value)) return `[${value.map(dumpsPython).join(', ')}]`;
  if (isJsonObject(value))
    return `{${Array.from(value, ([key, item]) => `${pythonString(key)}: ${dumpsPython(item)}`).join(', ')}}`;
  throw new TypeError('not a JSON value');
}
