import { isJsonArray, isJsonNumber, isJsonObject } from '../../lib/json.ts';
import type { JsonValue } from '../../types.ts';
import { PythonError } from './jinja/values.ts';

/** Tool schemas as openai-harmony 0.0.8 prints them: a TypeScript namespace in the developer message. */

export interface HarmonyTool {
  readonly name: string;
  readonly description: string;
  /** null = takes none. */
  readonly parameters: JsonValue;
}

/**
 * `{type: function, function: {name, description, parameters}}` or its inner object.
 * @throws PythonError where the library's own ToolDescription does not take it
 */
export function harmonyTool(tool: JsonValue): HarmonyTool {
  const outer = isJsonObject(tool) ? (tool.get('function') ?? tool) : tool;
  const field = (key: string): JsonValue | undefined => (isJsonObject(outer) ? outer.get(key) : undefined);
  const text = (key: string): string => {
    const value = field(key);
    if (typeof value === 'string') return value;
    throw new PythonError('ValidationError', `ToolDescription.${key}: Input should be a valid string`);
  };
  const parameters = field('parameters') ?? null;
  if (parameters !== null && !isJsonObject(parameters))
    throw new PythonError('ValidationError', 'ToolDescription.parameters: Input should be a valid dictionary');
  return { name: text('name'), description: text('description'), parameters };
}

/** Rust's `str::lines`: no last empty line, \r\n counts as one end. */
function linesOf(text: string): string[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines.map((line, index) =>
    line.endsWith('\r') && index < text.split('\n').length - 1 ? line.slice(0, -1) : line,
  );
}

export function toolsSection(tools: readonly HarmonyTool[]): string {
  const lines = ['## functions\n', 'namespace functions {\n'];
  for (const { name, description, parameters } of tools) {
    lines.push(...linesOf(description).map((line) => `// ${line}`));
    lines.push(
      parameters === null ? `type ${name} = () => any;\n` : `type ${name} = (_: ${typeText(parameters, '')}) => any;\n`,
    );
  }
  lines.push('} // namespace functions');
  return `# Tools\n\n${lines.join('\n')}`;
}

const member = (value: JsonValue | undefined, key: string): JsonValue | undefined =>
  isJsonObject(value) ? value.get(key) : undefined;
const textMember = (value: JsonValue | undefined, key: string): string | null => {
  const found = member(value, key);
  return typeof found === 'string' ? found : null;
};
const listMember = (value: JsonValue | undefined, key: string): readonly JsonValue[] | null => {
  const found = member(value, key);
  return isJsonArray(found) ? found : null;
};
const isEnum = (schema: JsonValue): boolean => (listMember(schema, 'enum')?.length ?? 0) > 0;

function nullable(schema: JsonValue, type: string): string {
  return member(schema, 'nullable') === true && !type.includes('null') ? `${type} | null` : type;
}

/** `quoteEnums`: the library forgets to take the quotes off in one of three places. */
function defaultText(schema: JsonValue, quoteEnums: boolean): string | null {
  const value = member(schema, 'default');
  if (value === undefined) return null;
  if (typeof value === 'string' && !isEnum(schema)) return `default: "${value}"`;
  if (typeof value === 'string' && !quoteEnums) return `default: ${value}`;
  return `default: ${dumpsRust(value)}`;
}

function trailing(comments: readonly (string | null)[]): string {
  const present = comments.filter((comment) => comment !== null);
  return present.length === 0 ? '' : ` // ${present.join(' ')}`;
}

function typeText(schema: JsonValue, indent: string): string {
  const variants = listMember(schema, 'oneOf');
  if (variants !== null) {
    return variants
      .map(
        (variant) =>
          `\n${indent} | ${nullable(variant, typeText(variant, `${indent}   `))}${trailing([textMember(variant, 'description'), defaultText(variant, true)])}`,
      )
      .join('');
  }
  const types = listMember(schema, 'type')
    ?.filter((type) => typeof type === 'string')
    .map((type) => (type === 'integer' ? 'number' : type));
  if (types !== undefined && types.length > 0) return types.join(' | ');
  switch (textMember(schema, 'type')) {
    case 'object':
      return objectText(schema, indent);
    case 'string': {
      const words = (listMember(schema, 'enum') ?? []).filter((word) => typeof word === 'string');
      return words.length > 0 ? words.map((word) => `"${word}"`).join(' | ') : 'string';
    }
    case 'number':
    case 'integer':
      return 'number';
    case 'boolean':
      return 'boolean';
    case 'array': {
      const items = member(schema, 'items');
      return items === undefined ? 'Array<any>' : `${typeText(items, indent)}[]`;
    }
    default:
      return 'any';
  }
}

function objectText(schema: JsonValue, indent: string): string {
  const description = textMember(schema, 'description');
  let out = `${description === null ? '' : `${indent}// ${description}\n`}{\n`;
  const properties = member(schema, 'properties');
  const required = new Set(listMember(schema, 'required') ?? []);
  if (isJsonObject(properties)) {
    for (const [key, value] of properties) out += propertyText(key, value, indent, required.has(key));
  }
  return `${out}${indent}}`;
}

function propertyText(key: string, value: JsonValue, indent: string, required: boolean): string {
  const title = textMember(value, 'title');
  const description = textMember(value, 'description');
  const name = `${indent}${key}${required ? '' : '?'}:`;
  let out = title === null ? '' : `${indent}// ${title}\n${indent}//\n`;
  if (member(value, 'oneOf') === undefined && description !== null) out += `${indent}// ${description}\n`;
  const examples = listMember(value, 'examples') ?? [];
  if (examples.length > 0) {
    out += `${indent}// Examples:\n`;
    for (const example of examples) if (typeof example === 'string') out += `${indent}// - "${example}"\n`;
  }
  const variants = listMember(value, 'oneOf');
  const fallback = defaultText(value, false);
  if (variants === null) {
    const comment = member(value, 'oneOf') === undefined && fallback !== null ? ` // ${fallback}` : '';
    return `${out}${name} ${nullable(value, typeText(value, `${indent}    `))},${comment}\n`;
  }
  const above = description !== null && textMember(variants[0], 'description') !== description;
  if (above) out += `${indent}// ${description}\n`;
  if (fallback !== null) out += `${indent}// ${fallback}\n`;
  out += `${name}\n`;
  for (const [index, variant] of variants.entries()) {
    const own = textMember(variant, 'description');
    const said = (index === 0 && above) || own === description ? null : own;
    out += `${indent} | ${nullable(variant, typeText(variant, `${indent}   `))}${trailing([said, defaultText(variant, false)])}\n`;
  }
  return `${out}${indent},\n`;
}

/** As serde_json prints a value: no spaces, and its own number format. */
function dumpsRust(value: JsonValue): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return JSON.stringify(value);
  if (isJsonNumber(value)) return numberRust(value.lexeme);
  if (isJsonArray(value)) return `[${value.map(dumpsRust).join(',')}]`;
  return `{${Array.from(value, ([key, item]) => `${JSON.stringify(key)}:${dumpsRust(item)}`).join(',')}}`;
}

const INT64_MIN = -(2n ** 63n);
const UINT64_MAX = 2n ** 64n - 1n;

/** Whole numbers of 64 bits as they are, everything else as the shortest float, with an exponent from 1e16 and below 1e-5 on. */
function numberRust(lexeme: string): string {
  if (/^-?\d+$/.test(lexeme)) {
    const whole = BigInt(lexeme);
    if (whole >= INT64_MIN && whole <= UINT64_MAX) return whole.toString();
  }
  const value = Number(lexeme);
  if (!Number.isFinite(value)) throw new PythonError('HarmonyError', `a number that JSON lacks: ${lexeme}`);
  if (Object.is(value, -0)) return '-0.0';
  const [digits, exponentText] = value.toExponential().split('e') as [string, string];
  const exponent = Number(exponentText);
  if (exponent >= 16 || exponent < -5) return `${digits}e${exponent}`;
  if (exponent < 0) {
    const significant = digits.replace('-', '').replace('.', '');
    return `${value < 0 ? '-' : ''}0.${'0'.repeat(-exponent - 1)}${significant}`;
  }
  const plain = value.toString();
  return plain.includes('.') ? plain : `${plain}.0`;
}
