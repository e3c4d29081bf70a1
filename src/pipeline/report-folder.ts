import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { writeFileAtomic } from '../lib/atomic-write.ts';
import { formatHeadline } from '../report/headline.ts';
import { renderReport } from '../report/page.ts';
import type { ReportView } from '../report/report-view.ts';
import { readCurves } from '../store/curves.ts';
import { readMetrics } from '../store/figures.ts';
import { readReportFacts, type ReportFacts } from '../store/report-facts.ts';
import { readParquet } from '../store/tables.ts';
import type { Exclusion } from '../types.ts';

/** The page of a run that is only a folder: from its files alone, nothing is read again and nothing computed. */
export interface ReportedFolder {
  /** Where the page was written. */
  readonly path: string;
  readonly headline: readonly string[];
  /** Files that the folder lacks, with what the page lacks for it. */
  readonly missing: readonly string[];
}

/**
 * @param source a run folder, or its metrics.json @param out folder for report.html; null = the run folder
 * @throws DataError (65) when there are no figures, CorruptFileError (65), DiskError (74)
 */
export async function reportFolder(source: string, out: string | null): Promise<ReportedFolder> {
  const folder = basename(source) === 'metrics.json' ? dirname(source) : source;
  const metrics = await readMetrics(folder);
  const curves = await readCurves(folder);
  const facts = await readReportFacts(folder);
  const table = join(folder, 'exclusions.parquet');
  const exclusions = existsSync(table) ? ((await readParquet(table)) as unknown as Exclusion[]) : null;
  const missing = [
    ...(curves === null ? ['curves.json: no ROC, reliability, lead time, choices or thresholds on the page'] : []),
    ...(facts === null ? ['report.json: no settings, hashes or examples on the page'] : []),
    ...(exclusions === null ? ['exclusions.parquet: it is not known what was left out'] : []),
  ];
  const { schemaVersion: _, ...known } = facts ?? unknownFacts(metrics.run, source);
  const view: ReportView = {
    ...known,
    warnings: [...known.warnings, ...missing.map((line) => `the run folder has no ${line}`)],
    metrics,
    curves: curves?.curves ?? [],
    stops: curves?.stops ?? [],
    thresholds: curves?.thresholds ?? [],
    ...(curves === null ? {} : { choices: curves.choices }),
    exclusions: exclusions ?? [],
  };
  const path = join(out ?? folder, 'report.html');
  await writeFileAtomic(path, renderReport(view));
  return { path, headline: formatHeadline(metrics), missing };
}

function unknownFacts(run: string, source: string): ReportFacts {
  return {
    schemaVersion: 1,
    title: `forewarn: ${run}`,
    command: `npx forewarn report ${source}`,
    run: {
      name: run,
      startedAt: 'at an unknown time',
      role: 'unknown',
      machine: {},
      versions: {},
      hashes: {},
      settings: {},
    },
    counts: {},
    warnings: [],
    limits: [],
    taps: [],
    examples: [],
  };
}
