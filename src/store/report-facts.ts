import { join } from 'node:path';
import { CorruptFileError } from '../errors.ts';
import { writeJsonAtomic } from '../lib/atomic-write.ts';
import { parseOrNothing, readTextIfThere } from '../lib/read-text.ts';
import type { ReportView } from '../report/report-view.ts';

/** report.json: what the page shows that stands in no other file of the run (title, counts, settings, example episodes). */
export interface ReportFacts extends Pick<
  ReportView,
  'title' | 'command' | 'run' | 'counts' | 'warnings' | 'limits' | 'taps' | 'examples'
> {
  readonly schemaVersion: 1;
}

/** @throws DiskError (74) */
export async function writeReportFacts(folder: string, facts: ReportFacts): Promise<void> {
  await writeJsonAtomic(join(folder, 'report.json'), facts);
}

/** null = the folder has none. @throws CorruptFileError (65) when it is none of this version */
export async function readReportFacts(folder: string): Promise<ReportFacts | null> {
  const path = join(folder, 'report.json');
  const content = await readTextIfThere(path);
  if (content === null) return null;
  const facts = parseOrNothing(content) as Partial<ReportFacts> | null | undefined;
  if (facts?.schemaVersion !== 1 || typeof facts.title !== 'string' || !Array.isArray(facts.examples)) {
    throw new CorruptFileError(
      `${path}: expected what a page shows, schemaVersion 1, got ${JSON.stringify(content.slice(0, 40))}. Remove the file for a page without it, or make the run again`,
    );
  }
  return facts as ReportFacts;
}
