/** What a search has found: as the model reads it, and as the client sees it. */

import type { CompletionIdentity } from '../../providers/provider.ts';
import { MAX_RESULT_CHARACTERS, type SearchResult } from '../../providers/web-search.ts';
import type { ChatBody } from '../chat/chat-body.ts';
import { createChunkEvent } from '../chat/completion-writer.ts';
import type { PreSearchPlan, SearchTerms } from './search-plan.ts';

/** Title and address of a result, in tokens at most. */
const RESULT_HEAD = 300;
/** All days are as long. */
const PLACEHOLDER_DAY = '2000-01-01';

/** Tokens that the results of a search add to the input at most. */
export function countMaxResultTokens({ maxResults }: SearchTerms): number {
  return maxResults * (MAX_RESULT_CHARACTERS + RESULT_HEAD) + RESULT_HEAD;
}

/** Tokens that a search before the answer adds to the input at most. */
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

/** What a search has found before an answer, and on which day: `2026-11-21`. */
export interface DatedResults {
  readonly results: readonly SearchResult[];
  readonly day: string;
}

/** The conversation with the results in front of its last question. */
export function withResults(body: ChatBody, plan: PreSearchPlan, { results, day }: DatedResults): ChatBody {
  const content = `${getPrompt(plan, day)}\n\n${formatResults(results)}`;
  const last = body.messages.findLastIndex(({ role }) => role === 'user');
  return { ...body, messages: body.messages.toSpliced(last, 0, { role: 'system', content }) };
}

/** Sources as OpenAI's clients know them; `content` is OpenRouter's addition. */
export function toCitations(results: readonly SearchResult[]): readonly object[] {
  return results.map(({ url, title, text }) => ({
    type: 'url_citation',
    url_citation: { url, title, content: text, start_index: 0, end_index: 0 },
  }));
}

/** The event that has the sources, for a stream's client; the role comes with the answer. */
export function createCitationEvent(identity: CompletionIdentity, results: readonly SearchResult[]): Uint8Array {
  return createChunkEvent(identity, { delta: { annotations: toCitations(results) } });
}

/** An answer in one piece with its sources. */
export function withCitations(body: Readonly<Record<string, unknown>>, results: readonly SearchResult[]) {
  const choices = body.choices as readonly { readonly message?: Readonly<Record<string, unknown>> }[];
  const annotations = toCitations(results);
  const cited = choices.map(({ message, ...choice }) => ({ ...choice, message: { ...message, annotations } }));
  return { ...body, choices: cited };
}
