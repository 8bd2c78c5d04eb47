/** Fields with generated text in the chat protocols. Anthropic's tool calls are objects and are not included. */
const GENERATED =
  /"(?:content|text|thinking|reasoning|reasoning_content|refusal|arguments)"\s*:\s*"([^"\\]*(?:\\.[^"\\]*)*)/gs;

/**
 * Extracts the generated text from a non-streaming response that is incomplete or invalid. The provider may invoice
 * this text, but not the JSON around it.
 */
export function extractGeneratedText(text: string): string {
  return Array.from(text.matchAll(GENERATED), ([, escaped = '']) => unescapeJson(escaped)).join('');
}

/** Returns the input unchanged if it is invalid, for example because it ends within an escape sequence. */
function unescapeJson(escaped: string): string {
  try {
    return JSON.parse(`"${escaped}"`);
  } catch {
    return escaped; // ends within an escape sequence
  }
}
