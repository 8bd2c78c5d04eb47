/** Formats search results for the model and for the client. */

import type { CompletionIdentity } from '../../providers/provider.ts';
import { MAX_RESULT_CHARACTERS, type SearchResult } from '../../providers/web-search.ts';
import { splitFirstEvent } from '../../wire/sse.ts';
import type { ChatBody } from '../chat/chat-body.ts';
import { type CompletionSink, createChunkEvent } from '../chat/completion-writer.ts';
import type { PreSearchPlan, SearchTerms } from './search-plan.ts';

/** Assumed maximum of the tokens in the title and URL of a result. */
const RESULT_HEAD = 300;
/** Placeholder for the day of a search when lengths are counted: all dates have the same length. */
const PLACEHOLDER_DAY = '2000-01-01';

/** Returns the maximum input tokens of the results of one search. */
export function countMaxResultTokens({ maxResults }: SearchTerms): number {
  return maxResults * (MAX_RESULT_CHARACTERS + RESULT_HEAD) + RESULT_HEAD;
}

/** Returns the maximum input tokens that a search before the call adds. */
export function countMaxPreSearchTokens(plan: PreSearchPlan): number {
  return countMaxResultTokens(plan) + getPrompt(plan, PLACEHOLDER_DAY).length;
}

function getPrompt({ prompt }: PreSearchPlan, day: string): string {
  const defaultPrompt = `The web was searched on ${day}. Use these results where they help, and name the sources you use as [title](address).`;
  return prompt ?? defaultPrompt;
}

export function formatResults(results: readonly SearchResult[]): string {
  if (results.length === 0) return 'The search found nothing.';
  return results.map(({ title, url, text }, i) => `[${i + 1}] ${title}\n${url}\n${text}`).join('\n\n');
}

/** The results of a search before the call, and the day of the search, such as `2026-11-21`. */
export interface DatedResults {
  readonly results: readonly SearchResult[];
  readonly day: string;
}

/** Inserts the results as a system message before the last user message. */
export function withResults(body: ChatBody, plan: PreSearchPlan, { results, day }: DatedResults): ChatBody {
  const content = `${getPrompt(plan, day)}\n\n${formatResults(results)}`;
  const last = body.messages.findLastIndex(({ role }) => role === 'user');
  return { ...body, messages: body.messages.toSpliced(last, 0, { role: 'system', content }) };
}

/** Converts results to annotations in OpenAI's format; `content` is OpenRouter's extension. */
export function toCitations(results: readonly SearchResult[]): readonly object[] {
  return results.map(({ url, title, text }) => ({
    type: 'url_citation',
    url_citation: { url, title, content: text, start_index: 0, end_index: 0 },
  }));
}

/** Creates the SSE event with the sources of a streamed completion. */
export function createCitationEvent(identity: CompletionIdentity, results: readonly SearchResult[]): Uint8Array {
  return createChunkEvent(identity, { delta: { annotations: toCitations(results) } });
}

/**
 * Inserts the sources of a search before the call into a streamed completion: after its first event, because clients
 * expect the role in the first one.
 */
export function insertCitations(
  write: CompletionSink['write'],
  identity: CompletionIdentity,
  results: readonly SearchResult[] = [],
): CompletionSink['write'] {
  let pending = results.length > 0 ? createCitationEvent(identity, results) : undefined;
  return (events) => {
    if (!pending) return write(events);
    const [first, rest] = splitFirstEvent(events);
    const cited = Buffer.concat([first, pending, rest]);
    pending = undefined;
    return write(cited);
  };
}

/** Sets the sources as the annotations of every choice of a non-streaming completion. */
export function withCitations(body: Readonly<Record<string, unknown>>, results: readonly SearchResult[]) {
  const choices = body.choices as readonly { readonly message?: Readonly<Record<string, unknown>> }[];
  const annotations = toCitations(results);
  const cited = choices.map(({ message, ...choice }) => ({ ...choice, message: { ...message, annotations } }));
  return { ...body, choices: cited };
}
