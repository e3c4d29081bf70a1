/** Public API of forewarn, in the order of the flow (DESIGN.md section 3). */
export type * from './types.ts';
export * from './errors.ts';
export { loadConfig } from './config/load.ts';
export { loadMapping } from './config/mapping.ts';
export { readEpisodes, readMetas } from './dataset/read.ts';
export { selectEpisodes } from './dataset/select.ts';
export { assignFolds, assignGroups, groupNames } from './dataset/split.ts';
export { openTokenizer } from './plan/tokenizer.ts';
export { openTemplate } from './plan/chat/template.ts';
export { findFamily } from './plan/chat/family.ts';
export { buildSequences, endOfTurn } from './plan/sequences.ts';
export { inspectModel } from './model/inspect-model.ts';
export { openReplayer } from './model/open-replayer.ts';
export { openFeatures } from './store/features.ts';
export { readMetrics } from './store/figures.ts';
export { readCurves } from './store/curves.ts';
export { loadProbe, saveProbe } from './probe/artefact.ts';
export { evaluate } from './forecast/evaluate.ts';
export { applyProbe } from './forecast/apply-probe.ts';
export { intervene } from './intervention/intervene.ts';
export { formatHeadline } from './report/headline.ts';
export { renderReport } from './report/page.ts';
export { run } from './pipeline/run.ts';
export { rollout } from './pipeline/rollout.ts';
export {
  createMonitor,
  type CallOptions,
  type Monitor,
  type MonitorDecision,
  type MonitorMessages,
  type MonitorOptions,
  type MonitorScore,
} from './pipeline/monitor.ts';
export type { OpenAiMessage, ProposedCall } from './pipeline/monitor-messages.ts';
export { reportFolder } from './pipeline/report-folder.ts';
