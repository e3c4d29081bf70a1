/**
 * The organism's text format, the same as models/organism-*\/chat_template.jinja writes it (a test compares the two).
 * One special token per marker, so that encoding piece by piece and as a whole give the same ids.
 */
import { stringifyJson } from '../dist/lib/json.js';

export const MARKERS = {
  system: '<|system|>',
  user: '<|user|>',
  tool: '<|tool|>',
  assistant: '<|assistant|>',
  end: '<|end|>',
  think: '<think>',
  thinkEnd: '</think>',
  call: '<tool_call>',
  callEnd: '</tool_call>',
};

/** Python's json.dumps of a flat object of strings: that is what `tojson` in a chat template writes. */
export function argumentsText(args) {
  return `{${Array.from(args, ([key, value]) => `${JSON.stringify(key)}: ${stringifyJson(value)}`).join(', ')}}`;
}

export function callText(call) {
  return `${MARKERS.call}\n{"name": "${call.name}", "arguments": ${argumentsText(call.arguments)}}\n${MARKERS.callEnd}`;
}

/** The reasoning as the json-tags families (Qwen 3, Hermes) write it. */
export function thinkText(reasoning) {
  return `${MARKERS.think}\n${reasoning}\n${MARKERS.thinkEnd}\n\n`;
}

export function openingText(scenario) {
  return `${MARKERS.system}${scenario.systemPrompt}${MARKERS.end}${MARKERS.user}${scenario.taskPrompt}${MARKERS.end}`;
}

export function toolText(result) {
  return `${MARKERS.tool}${result}${MARKERS.end}`;
}
