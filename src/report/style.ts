/** One column, readable at 390 px; colours follow the reader's scheme. */
export const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --accent: #0060a0; }
@media (prefers-color-scheme: dark) { :root { --accent: #6cb8ec; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 860px; margin: 0 auto; padding: 16px; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0.5rem 0; }
h2 { font-size: 1.25rem; margin: 2rem 0 0.5rem; border-top: 1px solid var(--line); padding-top: 1rem; }
h3 { font-size: 1.05rem; margin: 1.25rem 0 0.25rem; }
.lead { border-left: 4px solid var(--accent); padding: 0.5rem 0.75rem; background: var(--soft); }
.lead p { margin: 0.25rem 0; }
.scroll { overflow-x: auto; }
.scroll + .scroll { margin-top: 0.75rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 0.25rem 0.5rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td:first-child:nth-last-child(2) { width: 40%; }
th { font-weight: 600; white-space: nowrap; }
td { overflow-wrap: break-word; min-width: 5rem; }
td:first-child { min-width: 7rem; }
td:last-child { min-width: 9rem; }
details { margin: 0.5rem 0; }
summary { cursor: pointer; color: var(--accent); }
h4 { font-size: 0.95rem; margin: 0.75rem 0 0; }
.chart svg { max-width: 100%; height: auto; }
@media (max-width: 640px) { .chart svg { max-width: none; } }
ul.note { margin: 0.25rem 0; padding-left: 1.25rem; }
figure { margin: 0.75rem 0; }
figcaption, .note { font-size: 0.85rem; opacity: 0.85; }
.row { display: flex; flex-wrap: wrap; gap: 1rem; }
.row figure { flex: 1 1 320px; min-width: 0; }
.legend span { display: inline-flex; align-items: center; gap: 0.35rem; margin-right: 0.9rem; font-size: 0.85rem; }
.legend i { width: 0.8rem; height: 0.8rem; border-radius: 50%; display: inline-block; }
.legend i.square { border-radius: 0; }
pre { white-space: pre-wrap; background: var(--soft); padding: 0.5rem; font-size: 0.8rem; }
.turn { border-left: 3px solid var(--line); padding-left: 0.5rem; margin: 0.35rem 0; font-size: 0.85rem; }
.turn.unsafe { border-color: #d55e00; }
.turn.reveal { border-color: #009e73; }
@media print {
  /* Paper cannot be clicked: what is folded away is printed too. */
  details::details-content { content-visibility: visible; display: block; }
  .scroll { overflow: visible; }
  figure, tr { break-inside: avoid; }
}
`;
