import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isJsonObject, parseJson } from '../../../src/lib/json.ts';
import { compileTemplate } from '../../../src/plan/chat/python-jinja.ts';
import type { JsonObject } from '../../../src/types.ts';

interface Probe {
  readonly template: string;
  readonly rendered?: string;
  readonly error?: string;
  readonly message?: string;
}

/** `source` in the file names the program that gave the golden results. */
const golden = JSON.parse(readFileSync(new URL('../golden/jinja-probes.json', import.meta.url), 'utf8')) as {
  readonly context: string;
  readonly cases: readonly Probe[];
};
const CLOCK = '2025-09-05T09:05:00';

function dictionary(text: string): JsonObject {
  const value = parseJson(text);
  if (!isJsonObject(value)) throw new Error('expected an object');
  return value;
}
const render = (template: string, context = '{}'): string =>
  compileTemplate(template, CLOCK).render(dictionary(context));

describe('templates render as in Python', () => {
  for (const probe of golden.cases) {
    it(probe.template, () => {
      const attempt = (): string => render(probe.template, golden.context);
      if (probe.rendered !== undefined) expect(attempt()).toBe(probe.rendered);
      else expect(attempt).toThrow(probe.message);
    });
  }

  it('leaves the values it is given as they were', () => {
    const context = dictionary(golden.context);
    const before = JSON.stringify([...context.keys()]);
    compileTemplate('{% set ns = namespace(d) %}{% set ns.name = 1 %}{{ d }}', CLOCK).render(context);
    expect(JSON.stringify([...context.keys()])).toBe(before);
  });

  it('prints any JSON number as json.dumps prints what json.loads read, twice the same', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
        const once = render('{{ x | tojson }}', `{"x": ${JSON.stringify(number)}}`);
        expect(Number(once)).toBe(number + 0);
        expect(render('{{ x | tojson }}', `{"x": ${once}}`)).toBe(once);
      }),
    );
  });

  it('gives any text back unchanged through tojson and a JSON reader', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const printed = compileTemplate('{{ x | tojson }}', CLOCK).render(new Map([['x', text]]));
        expect(JSON.parse(printed)).toBe(text);
      }),
    );
  });

  it('shows the clock it was handed, in English', () => {
    expect(render("{{ strftime_now('%d %b %Y') }}|{{ strftime_now('%Y-%m-%d %H:%M:%S %A %B %j') }}")).toBe(
      '05 Sep 2025|2025-09-05 09:05:00 Friday September 248',
    );
  });

  it('reads CRLF as transformers does, in text mode', () => {
    expect(render('a\r\n{% if true %}\r\nb\r\n{% endif %}\r\nc\r\n')).toBe('a\nb\nc');
  });
});

describe('templates that are refused when they are read', () => {
  it.each([
    ['{{ x | no_such }}', "No filter named 'no_such'."],
    ['{{ x is no_such }}', "No test named 'no_such'."],
    ["{% include 'a' %}", 'include'],
    ['{% for m in messages %}\n{{ m.content }', 'line'],
    [`{{ ${'('.repeat(20_000)}1 }}`, 'limit'],
  ])('%s', (template, reason) => {
    expect(() => compileTemplate(template, CLOCK)).toThrow(reason);
  });
});

describe('templates that do not end', () => {
  it.each([
    ['{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}', 'limit of'],
    ["{% set n = namespace(s='aaaaaaaa') %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}", 'memory'],
    ["{% set n = namespace(s=['a']) %}{% for i in range(60) %}{% set n.s = n.s + n.s %}{% endfor %}", 'memory'],
    ["{{ 'a' * 999999999999 }}", 'memory'],
    ["{{ 'a'.ljust(999999999999) }}", 'memory'],
    ['{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}', 'maximum recursion depth exceeded'],
    ['{{ 9 ** 99999999 }}', 'too large'],
  ])('%s', (template, reason) => {
    const trial = { steps: 2_000_000, characters: 1 << 26 };
    expect(() => compileTemplate(template, CLOCK).render(new Map(), trial)).toThrow(reason);
  });
});
