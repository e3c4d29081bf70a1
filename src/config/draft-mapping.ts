import { Document, isMap, isScalar } from 'yaml';

/** A mapping file from its keys, with a comment above some of them and lines at the top. */
export function writeMapping(
  mapping: Readonly<Record<string, unknown>>,
  comments: Readonly<Record<string, string>>,
  header: readonly string[],
): string {
  const document = new Document(mapping, { sortMapEntries: false });
  document.commentBefore = header.map((line) => ` ${line}`).join('\n');
  if (isMap(document.contents)) {
    for (const { key } of document.contents.items) {
      const comment = isScalar(key) ? comments[String(key.value)] : undefined;
      if (comment !== undefined && isScalar(key)) key.commentBefore = ` ${comment}`;
    }
  }
  return document.toString({ lineWidth: 110, flowCollectionPadding: true });
}
