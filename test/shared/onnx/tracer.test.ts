import path from 'node:path';
import { readFile } from 'node:fs/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { sha256 } from '../../../src/lib/content-hash.ts';
import { indexGraph, type GraphIndex, type ValueRef } from '../../../src/model/graph/index-graph.ts';
import { decodeModel, encodeModel, type OnnxGraph, type OnnxModel } from '../../../src/model/graph/onnx-schema.ts';
import { readModel } from '../../../src/model/graph/read-model.ts';
import { tapValues } from '../../../src/model/graph/tap-graph.ts';
import { traceResidual } from '../../../src/model/graph/trace-residual.ts';
import { listFixtures, type Fixture } from './models.ts';

const fixtures = listFixtures();
const accepted = fixtures.filter((f) => f.golden.expect !== 'refuse');
const refused = fixtures.filter((f) => f.golden.expect === 'refuse');
let taps = 0;
afterAll(() => console.info(`tracer: ${accepted.length} graphs, ${taps} taps, ${refused.length} refused`));

const read = async (f: Fixture): Promise<OnnxModel> => decodeModel(await readFile(path.join(f.folder, 'model.onnx')));

/** The value, or NODE#slot where the exporter did not name it, as golden.json writes it. */
const label = (index: GraphIndex, ref: ValueRef): string => ref.name || `${index.nodes[ref.node]?.name}#${ref.slot}`;

/**
 * Values that golden.json found equal to a tap. In int4 files it matched by cosine against the float model, which random
 * weights make unreliable: there the table of the float build of the same builder holds too.
 */
function expectedValues(f: Fixture, tap: string): Set<string> {
  const siblings = fixtures.filter(
    (s) => s.golden.arch === f.golden.arch && s.name.split('/')[0]?.startsWith('genai') && f.name.startsWith('genai'),
  );
  const values = [f, ...siblings].flatMap(({ golden }) => [
    golden.table?.[tap] ?? '',
    ...(golden.values?.[tap] ?? []).map((v) => v.value),
  ]);
  return new Set(values.filter((v) => v !== ''));
}

const place = (ref: ValueRef): string => `${ref.node}:${ref.slot}`;

/** Removes every name but those of inputs and outputs, as a hostile or careless tool would. */
function stripNames(model: OnnxModel): void {
  const io = new Set([...model.graph.input, ...model.graph.output].map((v) => v.name));
  const renamed = new Map<string, string>();
  const rename = (name: string): string => {
    if (name === '' || io.has(name)) return name;
    const known = renamed.get(name) ?? `v${renamed.size}`;
    renamed.set(name, known);
    return known;
  };
  const strip = (graph: OnnxGraph): void => {
    for (const node of graph.node) {
      node.name = '';
      node.metadata_props = [];
      node.input = node.input.map(rename);
      node.output = node.output.map(rename);
      for (const a of node.attribute ?? []) if (a.g) strip(a.g);
    }
    for (const tensor of graph.initializer) tensor.name = rename(tensor.name ?? '');
    graph.value_info = [];
  };
  strip(model.graph);
}

describe('the residual stream is found by structure', () => {
  it.each(accepted.map((f) => [f.name, f] as const))(
    'in %s: as many blocks as the model has, each tap the golden value',
    async (_, f) => {
      const { stream, index, config } = await readModel(f.folder);
      expect(stream.blocks).toHaveLength(config.blocks ?? -1);
      const found = tapValues(stream);
      for (const [tap, ref] of found) {
        const expected = expectedValues(f, tap);
        // Not in every table: final_norm of hand-made graphs, inputs_embeds, the cast of a half-precision norm.
        if (expected.size === 0 || tap === 'final_norm') continue;
        expect([...expected], tap).toContain(label(index, ref));
        taps++;
      }
      for (const tap of Object.keys(f.golden.table ?? {}))
        if (tap.startsWith('resid_')) expect([...found.keys()]).toContain(tap);
    },
  );

  it.each(accepted.map((f) => [f.name, f] as const))('in %s with all names stripped: the same nodes', async (_, f) => {
    const named = await readModel(f.folder);
    const model = await read(f);
    stripNames(model);
    const stream = traceResidual(indexGraph(model.graph), named.io.logits);
    expect([...tapValues(stream)].map(([tap, ref]) => [tap, place(ref)])).toEqual(
      [...tapValues(named.stream)].map(([tap, ref]) => [tap, place(ref)]),
    );
  });

  it.each(refused.map((f) => [f.name, f] as const))(
    'and not in %s: several streams, refused with the reason',
    async (_, f) => {
      await expect(readModel(f.folder)).rejects.toThrow(/expected one residual stream .* got several/);
      const model = await read(f);
      stripNames(model);
      expect(() => traceResidual(indexGraph(model.graph), 'logits')).toThrow(/got several/);
    },
  );
});

/** Everything a message holds, unknown fields too, as text; bytes by their hash. */
function contentOf(value: unknown): string {
  if (value instanceof Uint8Array) return sha256(value);
  if (Array.isArray(value)) return `[${value.map(contentOf).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'undefined';
  if ('low' in value && 'high' in value) return `${String(value.high)}:${String(value.low)}`;
  const unknown = (value as { $unknowns?: Uint8Array[] }).$unknowns ?? [];
  const own = Object.entries(value).map(([key, item]) => `${key}:${contentOf(item)}`);
  return `{${own.join()}${unknown.map((u) => Buffer.from(u).toString('hex')).join()}}`;
}

describe('a graph that is read and written', () => {
  it.each(accepted.map((f) => [f.name, f] as const))('%s keeps every field, known or not', async (_, f) => {
    const model = await read(f);
    const again = decodeModel(encodeModel(model));
    expect(sha256(contentOf(again))).toBe(sha256(contentOf(await read(f))));
  });
});
