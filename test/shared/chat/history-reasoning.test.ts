import { describe, expect, it } from 'vitest';
import { fromPlain } from '../../../src/lib/json.ts';
import { findFamily } from '../../../src/plan/chat/family.ts';
import { promptRenderer } from '../../../src/plan/chat/history.ts';
import { promptMessages } from '../../../src/plan/chat/messages.ts';
import type { ReplaySettings } from '../../../src/plan/settings.ts';
import type { Episode } from '../../../src/types.ts';
import { goldenEpisode, goldenTemplate, templateIndex } from './golden-episode.ts';

/** Two user messages, so that templates drop the reasoning before the second. */
function transcript(): Episode {
  const call = (id: string, cmd: string) => [{ id, type: 'function', function: { name: 'bash', arguments: { cmd } } }];
  const messages = [
    { role: 'user', content: 'Go.' },
    { role: 'assistant', content: '', tool_calls: call('a1B2c3D00', 'ls') },
    { role: 'tool', content: 'a b', name: 'bash', tool_call_id: 'a1B2c3D00' },
    { role: 'assistant', content: 'Done.' },
    { role: 'user', content: 'More.' },
    { role: 'assistant', content: '', tool_calls: call('a1B2c3D01', 'pwd') },
    { role: 'tool', content: 'c d', name: 'bash', tool_call_id: 'a1B2c3D01' },
  ];
  const base = goldenEpisode(JSON.stringify({ messages, tools: null }), 'history');
  const tools = [
    {
      type: 'function',
      function: {
        name: 'bash',
        description: 'Run.',
        parameters: { type: 'object', properties: { cmd: { type: 'string', description: 'c' } }, required: ['cmd'] },
      },
    },
  ].map(fromPlain);
  return {
    ...base,
    tools,
    turns: base.turns.map((turn) => ({ ...turn, reasoning: thought(turn.index) })),
  };
}

const thought = (turn: number): string => `Thought number ${turn}.`;
const TURNS = [0, 1, 2];

/** Templates with which this transcript cannot be had, and what is said there. */
const REFUSED: readonly { readonly templates: RegExp; readonly says: RegExp }[] = [
  { templates: /^kimi/, says: /append/ },
  { templates: /^gemma3/, says: /Conversation roles must alternate/ },
  // From the second call of a conversation on it prints no header before one.
  { templates: /^deepseek-r1/, says: /shows no place for the reasoning of message 5/ },
  // They print no call: such a turn leaves no trace.
  { templates: /^(?:llama3$|smollm)/, says: /shows no place for the reasoning of message 1/ },
];

describe('replay.historyReasoning', () => {
  for (const name of Object.keys(templateIndex())) {
    it(name, () => {
      const template = goldenTemplate(name, '2025-08-15T09:05:00', { enable_thinking: true, thinking: true });
      const family = findFamily(template.text, { stack: 'hf-template', toolText: 'native' }, name);
      const episode = transcript();
      const render = (mode: ReplaySettings['historyReasoning']): string => {
        const style = { toolText: 'native', historyReasoning: mode, reasoningField: family.reasoningField } as const;
        try {
          return promptRenderer(template, family, mode)(promptMessages(episode, TURNS.length, style), episode.tools);
        } catch (error) {
          return `refused: ${(error as Error).message}`;
        }
      };
      const none = render('none');
      const all = render('all');
      const empty = render('empty-block');
      const refusals = [all, empty].filter((text) => text.startsWith('refused: '));
      console.log(`${name}: ${family.name}; ${refusals.length === 0 ? 'all, empty-block' : refusals.join(' | ')}`);
      expect(none).not.toContain('Thought number');
      if (family.historyBlock === null) {
        expect(all).toMatch(/^refused: replay\.historyReasoning: expected template or none, as .* writes no reasoning/);
        return;
      }
      const exception = REFUSED.find(({ templates }) => templates.test(name));
      if (exception !== undefined) {
        expect(refusals).toHaveLength(2);
        for (const refusal of refusals) expect(refusal).toMatch(exception.says);
        return;
      }
      const { text: block, empties } = family.historyBlock;
      // Every turn has its own thought, at the place and in the words of the family …
      const at = TURNS.map((turn) => all.indexOf(block(thought(turn)).trim()));
      expect(at.every((place, turn) => place > (at[turn - 1] ?? -1))).toBe(true);
      expect(all.split('Thought number')).toHaveLength(TURNS.length + 1);
      // … and nothing else differs from the prompt with empty blocks there.
      const blanked = TURNS.reduce((text, turn) => text.replace(thought(turn), ''), all);
      const shortest = empties.at(-1) ?? block('');
      const same = (text: string): string =>
        text.replaceAll(block(''), shortest).replaceAll(block('').trim(), shortest);
      expect(same(empty)).toBe(same(blanked));
    });
  }
});
