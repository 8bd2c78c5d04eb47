/** Where the chat protocols put what a model has generated. Calls of Anthropic's tools are objects, and are left out. */
const GENERATED =
  /"(?:content|text|thinking|reasoning|reasoning_content|refusal|arguments)"\s*:\s*"([^"\\]*(?:\\.[^"\\]*)*)/gs;

/**
 * What a model has generated of an answer in one piece that broke off, or cannot be understood: it may be invoiced, the
 * JSON around it is not.
 */
export function extractGeneratedText(text: string): string {
  return Array.from(text.matchAll(GENERATED), ([, escaped = '']) => unescapeJson(escaped)).join('');
}

/** It may end in the middle of an escape. */
function unescapeJson(escaped: string): string {
  try {
    return JSON.parse(`"${escaped}"`);
  } catch {
    return escaped;
  }
}
