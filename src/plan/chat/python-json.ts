import { isJsonArray, isJsonNumber, isJsonObject } from '../../lib/json.ts';
import type { JsonValue } from '../../types.ts';

/** Python's repr of a float: shortest digits, an exponent below 1e-4 and from 1e16 on (1e+16, 1e-07), else with a point. */
export function floatRepr(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (Object.is(value, -0)) return '-0.0';
  const [digits, exponentText] = value.toExponential().split('e') as [string, string];
  const exponent = Number(exponentText);
  if (exponent < -4 || exponent >= 16)
    return `${digits}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
  const plain = value.toString();
  return plain.includes('.') ? plain : `${plain}.0`;
}

/** json.dumps has other words than repr for what JSON has none for. */
export function floatJson(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity';
  return floatRepr(value);
}

function numberJson(lexeme: string): string {
  return /[.eEN]|Infinity/.test(lexeme) ? floatJson(Number(lexeme)) : BigInt(lexeme).toString();
}

/** A JSON string as json.dumps writes it: with ensure_ascii=False everything but quotes, backslash and controls as it is. */
export function stringJson(text: string, ensureAscii = false): string {
  // Unlike JSON.stringify, Python leaves a lone surrogate as it is.
  const plain = JSON.stringify(text).replace(/\\(?:\\|u(d[89a-f][0-9a-f]{2}))/g, (whole, hex: string | undefined) =>
    hex === undefined ? whole : String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return ensureAscii
    ? plain.replace(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
    : plain;
}

/** json.dumps(value, ensure_ascii=False) of the value that json.loads gave: ", " and ": ", keys in the order of the text. */
export function dumpsPython(value: JsonValue): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return stringJson(value);
  if (isJsonNumber(value)) return numberJson(value.lexeme);
  if (isJsonArray(value)) return `[${value.map(dumpsPython).join(', ')}]`;
  if (isJsonObject(value))
    return `{${Array.from(value, ([key, item]) => `${stringJson(key)}: ${dumpsPython(item)}`).join(', ')}}`;
  throw new TypeError('not a JSON value');
}
