/** How a log is turned back into what the model saw (configuration: `replay`). */
export interface ReplaySettings {
  readonly stack: 'hf-template' | 'harmony' | 'raw';
  /** For templates that know no tools: schemas, calls and results as text. */
  readonly toolText: 'native' | 'json-tags' | 'tool_code';
  readonly historyReasoning: 'template' | 'none' | 'all' | 'empty-block';
  readonly templateKwargs: Readonly<Record<string, unknown>>;
  /** ISO day that the template's clock shows. */
  readonly date: string;
  readonly tools: 'column' | 'file' | 'none';
  readonly context: { readonly limit: number | null; readonly policy: 'error' | 'skip' | 'truncate-middle' };
}
