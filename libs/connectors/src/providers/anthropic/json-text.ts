/** The longest text before a JSON object that is held back until it is known whether a fence is in it. */
const MAX_START = 64;
const OPENING_FENCE = /^\s*```(?:json)?\s*(?=\{)/i;
const CLOSING_FENCE = /[\s`]+$/;

/**
 * Removes the Markdown code fence that Claude sometimes writes around JSON, from a text that arrives in parts.
 * Anthropic can enforce a schema, but has no equivalent of `json_object`.
 */
export class JsonTextFilter {
  private start: string | undefined = '';
  private isFenced = false;
  /** The end of the text so far, if it can be a closing fence. */
  private tail = '';

  /** Returns the text that can be forwarded. */
  push(text: string): string {
    if (this.start === undefined) return this.holdTail(text);
    const start = this.start + text;
    if (!start.includes('{') && start.length < MAX_START) {
      this.start = start;
      return '';
    }
    this.start = undefined;
    const fence = OPENING_FENCE.exec(start)?.[0] ?? '';
    this.isFenced = fence !== '';
    return this.holdTail(start.slice(fence.length));
  }

  /** Returns the rest of the text, at its end. */
  flush(): string {
    const { start = '', tail } = this;
    this.start = undefined;
    this.tail = '';
    return start + (tail.includes('```') ? '' : tail);
  }

  private holdTail(text: string): string {
    if (!this.isFenced) return text;
    const all = this.tail + text;
    this.tail = CLOSING_FENCE.exec(all)?.[0] ?? '';
    return all.slice(0, all.length - this.tail.length);
  }
}

/** Returns a complete text without a code fence around its JSON. */
export function removeFence(text: string): string {
  const filter = new JsonTextFilter();
  return filter.push(text) + filter.flush();
}
