import type { EpisodeField } from '../../config/mapping-fields.ts';

/** Names are compared without case and punctuation. */
export const bare = (text: string): string => text.toLowerCase().replace(/[^a-z0-9]/g, '');

/** Other names of the card's columns. */
const COLUMN_ALIASES: Readonly<Partial<Record<EpisodeField, readonly string[]>>> = {
  episode_id: ['id', 'uuid', 'episode', 'trajectory_id', 'sample_id'],
  model: ['model_name', 'agent', 'agent_model'],
  scenario_id: ['task_id', 'scenario'],
  scenario_family: ['family', 'domain', 'category'],
  counterfactual_pair_id: ['pair_id', 'pair'],
  cf_value: ['world', 'arm'],
  reveal_event: ['reveal_step', 'reveal'],
  first_unsafe_event: ['first_unsafe_step', 'unsafe_step', 'violation_step', 'first_violation'],
  unsafe_episode: ['unsafe', 'violated', 'is_unsafe'],
  first_critical_event: ['first_critical_step'],
  status: ['end_reason', 'stop_reason', 'termination'],
  final_answer: ['report', 'final_report', 'answer'],
};

/** The column that most likely holds a canonical field; null = none does. */
export function findColumn(field: EpisodeField, names: readonly string[]): string | null {
  if (names.includes(field)) return field;
  const wanted = [field, ...(COLUMN_ALIASES[field] ?? [])].map(bare);
  return wanted.map((want) => names.find((name) => bare(name) === want)).find((name) => name !== undefined) ?? null;
}
