/**
 * Characters that are not seen or that move others: C0 and C1 controls (tab and line feed stay), soft hyphen, zero-width
 * and joining characters, direction marks, overrides and isolates, line and paragraph separators, variation and tag
 * characters (they hide text), halves of surrogate pairs (they are no text).
 */
const UNSEEN =
  // oxlint-disable-next-line no-control-regex -- controls are what this looks for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]|\u17b4|\u17b5|\p{Cs}/gu;

/** Unseen characters as what they are: `\u202e`, `\u{e0041}`. Markup is left alone. */
export function showUnseen(text: string): string {
  return text.replace(UNSEEN, (char) => {
    const code = char.codePointAt(0)!.toString(16);
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`;
  });
}

/** Text of logs is hostile: markup, bidirectional overrides, control characters. Shown as text, never as anything else. */
export function escapeHtml(text: string): string {
  return showUnseen(
    text
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')
      .replaceAll('>', '&gt;')
      .replaceAll('"', '&quot;')
      .replaceAll("'", '&#39;'),
  );
}
