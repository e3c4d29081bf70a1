import { dirname, isAbsolute, resolve } from 'node:path';
import { z } from 'zod';
import { explain } from './explain.ts';
import { GATE_DEFAULTS, gateSchema, STEERING_DEFAULTS, steeringSchema } from './gate.ts';
import { readYaml } from './yaml-text.ts';

/**
 * The configuration of `forewarn rollout`: which scenarios a model acts in, how it is prompted and sampled, where the
 * episodes go. Strict; what is not in the file has the default below.
 */
const path = z.string().min(1);
const count = z.int().min(1);

const rolloutSchema = z
  .strictObject({
    name: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/)
      .describe('name of the rollout set; the condition and the world are appended to it'),
    seed: z.int().min(0).describe('with the scenario’s own seed it fixes the randomness of sampling'),
    scenarios: z.union([
      z.strictObject({ path }),
      z.strictObject({
        generate: z.strictObject({
          tasks: count,
          seed: z.int().min(0),
          conditions: z.array(z.enum(['candid', 'obfuscate'])).min(1),
          nuisanceTasks: z.int().min(0).describe('tasks whose nuisance copy is played too'),
        }),
      }),
    ]),
    model: z.strictObject({
      folder: path,
      name: z.string().min(1).nullable().describe('how the model is called in the data; null = the folder’s name'),
      threads: z.int().min(1).max(256),
      executionProvider: z.enum(['cpu', 'cuda', 'webgpu']),
    }),
    chat: z.strictObject({
      toolText: z.enum(['native', 'json-tags', 'tool_code']),
      historyReasoning: z.enum(['template', 'none', 'all', 'empty-block']),
      templateKwargs: z.record(z.string(), z.unknown()),
      date: z.string().regex(/^\d{4}-\d{2}-\d{2}$/),
    }),
    sampling: z.strictObject({
      temperature: z.number().min(0).describe('0 = greedy'),
      topP: z.number().gt(0).max(1),
      maxTokens: count.describe('generated tokens a turn'),
    }),
    maxTurns: count.nullable().describe('null = each scenario’s own limit'),
    gate: gateSchema.nullable().describe('null = the model acts freely'),
    steering: steeringSchema.nullable().describe('null = no dose curve'),
    output: path,
  })
  .superRefine((config, context) => {
    if (config.gate !== null && config.steering !== null)
      context.addIssue({ code: 'custom', path: ['steering'], message: 'a gate or a dose curve in one file, not both' });
  });

export type RolloutConfig = z.infer<typeof rolloutSchema>;

const DEFAULTS = {
  seed: 0,
  model: { name: null, threads: 1, executionProvider: 'cpu' },
  chat: { toolText: 'native', historyReasoning: 'template', templateKwargs: {}, date: '2026-01-01' },
  sampling: { temperature: 0.7, topP: 1, maxTokens: 256 },
  maxTurns: null,
  gate: null,
  steering: null,
} as const;

type Defaults = Readonly<Record<string, unknown>>;

/** Under a section that the file may leave out altogether. */
const WITHIN: Readonly<Record<string, object>> = { gate: GATE_DEFAULTS, steering: STEERING_DEFAULTS };

/** Reads, merges and checks; paths come back absolute, relative ones start at the file. @throws UserError (2) */
export async function loadRolloutConfig(file: string): Promise<RolloutConfig> {
  const yaml = await readYaml(file);
  const given = yaml.value;
  const merged = Object.fromEntries(
    [...new Set([...Object.keys(DEFAULTS), ...Object.keys(given)])].map((key) => {
      const over = given[key];
      const below = isPlain(over) ? (WITHIN[key] ?? (DEFAULTS as Defaults)[key]) : (DEFAULTS as Defaults)[key];
      const both = isPlain(below) && isPlain(over) ? { ...below, ...over } : (over ?? below);
      return [key, both];
    }),
  );
  const parsed = rolloutSchema.safeParse(merged);
  if (!parsed.success)
    throw explain(parsed.error, {
      file: yaml,
      value: merged,
      known: (at) => (at.length === 0 ? Object.keys(rolloutSchema.shape) : []),
    });
  const base = dirname(resolve(file));
  const local = (value: string): string => (isAbsolute(value) ? value : resolve(base, value));
  const config = parsed.data;
  return {
    ...config,
    scenarios: 'path' in config.scenarios ? { path: local(config.scenarios.path) } : config.scenarios,
    model: { ...config.model, folder: local(config.model.folder) },
    gate: config.gate && {
      ...config.gate,
      probes: config.gate.probes.map((probe) => ({ ...probe, folder: local(probe.folder) })),
    },
    steering: config.steering && { ...config.steering, probe: local(config.steering.probe) },
    output: local(config.output),
  };
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
