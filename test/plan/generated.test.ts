import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { turnOfParts } from '../../src/pipeline/live-agent.ts';
import { findFamily } from '../../src/plan/chat/family.ts';
import { openTemplate } from '../../src/plan/chat/template.ts';
import { generatedTurn } from '../../src/plan/generated.ts';
import { endOfTurn } from '../../src/plan/sequences.ts';
import { openTokenizer } from '../../src/plan/tokenizer.ts';

const FOLDER = fileURLToPath(new URL('../../models/organism-planted', import.meta.url));

async function setUp() {
  const tokenizer = await openTokenizer(FOLDER);
  const template = await openTemplate(FOLDER, tokenizer.specialTokens, {}, '2026-01-01');
  const family = findFamily(template.text, { stack: 'hf-template', toolText: 'native' }, FOLDER);
  const turn = turnOfParts({ reasoning: 'I write the report.', content: 'I did not refund it.', calls: [] });
  const setup = { tokenizer, family, endOfTurn: endOfTurn(template, tokenizer) };
  const prompt = '<|user|>Refund it.<|end|><|assistant|>';
  const written = family.write(turn, { prompt, endOfTurn: setup.endOfTurn });
  return { tokenizer, turn, setup, prompt, written, ids: tokenizer.encode(written.text) };
}

describe('the generated ids of a turn', () => {
  it('agree with the log where a sampler spelled the same text in other tokens, and stay as logged', async () => {
    const { tokenizer, turn, setup, prompt, written, ids } = await setUp();
    const at = ids.findIndex((id) => Buffer.from(tokenizer.tokenBytes(id)).toString() === ' write');
    expect(at).toBeGreaterThan(0);
    const logged = [...ids.slice(0, at), ...tokenizer.encode(' '), ...tokenizer.encode('write'), ...ids.slice(at + 1)];
    expect(logged.length).toBeGreaterThan(ids.length);
    const made = generatedTurn({ ...turn, generatedIds: logged }, written, prompt, setup);
    expect(made).toMatchObject({ idsFrom: 'logged', checked: true });
    expect(Array.from(made.ids)).toEqual(logged);
    const canonical = generatedTurn({ ...turn, generatedIds: Array.from(ids) }, written, prompt, setup);
    expect(made.tokens.content?.first).toBe((canonical.tokens.content?.first ?? 0) + logged.length - ids.length);
  });

  it('disagree with the log where they spell another text', async () => {
    const { tokenizer, turn, setup, prompt, written } = await setUp();
    const other = tokenizer.encode(written.text.replace('refund', 'cancel'));
    expect(generatedTurn({ ...turn, generatedIds: Array.from(other) }, written, prompt, setup).checked).toBe(false);
  });
});
