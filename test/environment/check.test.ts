import { describe, expect, it } from 'vitest';
import { checkScenarios } from '../../src/environment/check.ts';
import { CONDITIONS, generatePair } from '../../src/environment/generate/generate.ts';
import type { Scenario } from '../../src/environment/scenario.ts';

const worlds = (index: number): readonly Scenario[] =>
  generatePair({ seed: 9, index, condition: 'obfuscate', set: 'test' }).map((item) => item.scenario);

/** Applies a change to one world of a sound pair and returns the kinds of fault that are found. */
function faultsAfter(index: number, world: Scenario['world'], change: (scenario: Scenario) => Scenario): string[] {
  const changed = worlds(index).map((scenario) => (scenario.world === world ? change(scenario) : scenario));
  return [...new Set(checkScenarios(changed).map((fault) => fault.kind))];
}

const OWNERSHIP_DELETE = 12; // index of the template among the 24: the action is delete_file
const AUTHORIZATION_GRANT = 1; // the action is a mocked command

const changeSecondFact = (scenario: Scenario): Scenario => ({
  ...scenario,
  files: Object.fromEntries(
    Object.entries(scenario.files).map(([path, text]) => [path, text.replace(/hour \d+/, 'hour 99')]),
  ),
});

const flip = (scenario: Scenario): Scenario => ({
  ...scenario,
  permissions: {
    ...scenario.permissions,
    rules: scenario.permissions.rules.map((rule) => ({ ...rule, allowed: !rule.allowed })),
  },
});

const hide = (scenario: Scenario): Scenario => ({
  ...scenario,
  files: {},
  commands: scenario.commands.map((rule) =>
    rule.effects.length > 0 ? { ...rule, output: scenario.world === 'x+' ? 'fine' : 'forbidden' } : rule,
  ),
});

const byToolOnly = (s: Scenario): Scenario => ({
  ...s,
  critical: { calls: s.critical.calls.slice(0, 1), effects: [] },
});

const catchListing = (s: Scenario): Scenario => ({
  ...s,
  critical: { ...s.critical, calls: [...s.critical.calls, { tool: 'list_files', args: {} }] },
});

const grant = (s: Scenario): Scenario => ({ ...s, permissions: { ...s.permissions, escalation: 'granted' } });

describe('checkScenarios', () => {
  it('finds nothing in generated scenarios of every template, style and condition', () => {
    const scenarios = CONDITIONS.flatMap((condition) =>
      Array.from({ length: 240 }, (_, index) => generatePair({ seed: 4, index, condition, set: 'test' })).flatMap(
        (pair) => pair.map((item) => item.scenario),
      ),
    );
    expect(checkScenarios(scenarios)).toEqual([]);
    expect(new Set(scenarios.map((scenario) => scenario.template)).size).toBe(24);
    expect(new Set(scenarios.map((scenario) => scenario.family)).size).toBe(8);
    expect(new Set(scenarios.map((scenario) => scenario.policyStyle)).size).toBe(4);
  });
  it('names a second fact in another place', () => {
    expect(
      faultsAfter(3, 'x+', (scenario) => ({ ...scenario, files: { ...scenario.files, 'extra.txt': 'more' } })),
    ).toEqual(['fact_not_single']);
  });
  it('names a second fact in the same text', () => {
    expect(faultsAfter(0, 'x+', changeSecondFact)).toEqual(['fact_not_single']);
  });
  it('names worlds that do not differ, which also reveal nothing', () => {
    const [minus] = worlds(0);
    if (minus === undefined) throw new Error('no world');
    expect(faultsAfter(0, 'x+', (plus) => ({ ...plus, files: minus.files, db: minus.db }))).toEqual([
      'fact_not_single',
      'reveal_unobservable',
    ]);
  });
  it('names a pair without its twin', () => {
    expect(checkScenarios(worlds(0).slice(0, 1)).map((fault) => fault.kind)).toEqual(['worlds_missing']);
  });
  it('names a critical action that cannot be carried out', () => {
    expect(
      faultsAfter(OWNERSHIP_DELETE, 'x-', (s) => ({
        ...s,
        critical: { calls: [{ tool: 'delete_file', args: { path: 'gone.csv' } }], effects: [] },
      })),
    ).toEqual(['critical_unreachable']);
  });
  it('names an action that x+ forbids and one that x− allows', () => {
    expect(faultsAfter(5, 'x+', flip)).toEqual(['not_allowed_in_plus']);
    expect(faultsAfter(5, 'x-', flip)).toEqual(['nuisance_changes_fact', 'allowed_in_minus']);
  });
  it('names a fact that only the critical action itself shows', () => {
    const kinds = checkScenarios(worlds(AUTHORIZATION_GRANT).map(hide)).map((fault) => fault.kind);
    expect(kinds).toContain('reveal_unobservable');
  });
  it('names a matcher that misses an equivalent route', () => {
    expect(faultsAfter(OWNERSHIP_DELETE, 'x-', byToolOnly)).toEqual(['matcher_misses']);
    expect(faultsAfter(AUTHORIZATION_GRANT, 'x+', byToolOnly)).toEqual(['matcher_misses']);
  });
  it('names a matcher that also catches reading', () => {
    expect(faultsAfter(OWNERSHIP_DELETE, 'x-', catchListing)).toEqual(['matcher_overreaches']);
  });
  it('names a nuisance copy with other permissions', () => {
    expect(faultsAfter(7, 'nuisance', grant)).toEqual(['nuisance_changes_fact']);
  });
});
