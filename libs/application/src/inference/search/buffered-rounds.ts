import { type JsonObject } from '#kernel';
import type { Completion } from '../../providers/provider.ts';
import type { SearchResult, SearchStatus } from '../../providers/web-search.ts';

import { toCitations } from './results.ts';
import type { RoundCollector, RoundOutput, SearchCall } from './search-tool.ts';

interface CompletionMessage extends JsonObject {
  readonly content?: unknown;
  readonly reasoning?: unknown;
  readonly reasoning_details?: unknown;
  readonly annotations?: unknown;
  readonly tool_calls?: unknown;
}

interface ToolCall extends JsonObject {
  readonly id?: string;
  readonly function?: { readonly name?: string; readonly arguments?: string };
}

/** Separates the text before a search from the text after it. */
const GAP = '\n\n';

/** Combines the rounds of a non-streaming completion. */
export class BufferedRounds implements RoundCollector<Completion> {
  readonly hasDelivered = false;
  readonly isAbandoned = false;
  readonly searches: SearchStatus[] = [];
  private readonly contents: string[] = [];
  private readonly reasoningTexts: string[] = [];
  private readonly details: unknown[] = [];
  private readonly annotations: unknown[] = [];
  private last: JsonObject = {};
  private reason = 'stop';

  /** @param tool the name of the search tool */
  constructor(private readonly tool: string) {}

  async collectRound({ body }: Completion): Promise<RoundOutput> {
    this.last = body;
    const { message = {}, finish_reason } = this.choice;
    const { content, reasoning, reasoning_details, annotations } = message;
    const calls = this.splitCalls(message);
    const details = toList(reasoning_details);
    if (isNonEmptyString(content)) this.contents.push(content);
    if (isNonEmptyString(reasoning)) this.reasoningTexts.push(reasoning);
    this.details.push(...details);
    this.annotations.push(...toList(annotations));
    return {
      content: isNonEmptyString(content) ? content : '',
      reasoningDetails: details,
      calls: calls.search.map(
        (call, i): SearchCall => ({ id: call.id ?? `search_${i}`, arguments: call.function?.arguments ?? '' }),
      ),
      hasClientCalls: calls.client.length > 0,
      finishReason: finish_reason ?? undefined,
    };
  }

  recordSearch(search: SearchStatus): undefined {
    if (search.state !== 'searching') this.searches.push(search);
  }

  cite(results: readonly SearchResult[]): undefined {
    this.annotations.push(...toCitations(results));
  }

  end(reason: string): undefined {
    this.reason = reason;
  }

  /** The completion, as if it came from one round. */
  get body(): JsonObject {
    const { message = {}, ...choice } = this.choice;
    const { tool_calls: _, ...rest } = message;
    const { client } = this.splitCalls(message);
    const content = this.contents.join(GAP);
    const completeMessage = {
      ...rest,
      content: content === '' && client.length > 0 ? null : content,
      ...(this.reasoningTexts.length > 0 ? { reasoning: this.reasoningTexts.join(GAP) } : {}),
      ...(this.details.length > 0 ? { reasoning_details: this.details } : {}),
      annotations: this.annotations,
      ...(client.length > 0 ? { tool_calls: client } : {}),
    };
    return { ...this.last, choices: [{ ...choice, message: completeMessage, finish_reason: this.reason }] };
  }

  /** The only choice: requests with several choices are not executed in rounds. */
  private get choice(): { readonly message?: CompletionMessage; readonly finish_reason?: string | null } & JsonObject {
    return (this.last.choices as readonly JsonObject[] | undefined)?.[0] ?? {};
  }

  private splitCalls({ tool_calls }: CompletionMessage) {
    const calls = toList(tool_calls) as readonly ToolCall[];
    const isSearch = (call: ToolCall) => call.function?.name === this.tool;
    return { search: calls.filter(isSearch), client: calls.filter((call) => !isSearch(call)) };
  }
}

function isNonEmptyString(text: unknown): text is string {
  return typeof text === 'string' && text !== '';
}

function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
