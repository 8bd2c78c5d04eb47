/** The tool by which a model searches: how it is offered, and how the model's calls of it are read and answered. */

import type { Endpoint } from '#catalogue';
import { type JsonObject } from '#kernel';
import type { SearchResult, SearchStatus } from '../../providers/web-search.ts';

import type { ChatBody } from '../chat/chat-body.ts';
import { hasFunction, WEB_SEARCH } from './search-plan.ts';

/** A call of the tool, as the model made it. */
export interface SearchCall {
  readonly id: string;
  /** JSON, if the model has kept to it. */
  readonly arguments: string;
}

/** What a model said in one round. */
export interface RoundOutput {
  readonly content: string;
  /** Thoughts with their signatures, which some upstreams want back together with the results of tools. */
  readonly reasoningDetails: readonly unknown[];
  readonly calls: readonly SearchCall[];
  /** Whether it also called functions of the client's, which must then answer first. */
  readonly hasClientCalls: boolean;
  readonly finishReason: string | undefined;
}

/** Takes the answers of all rounds and makes one of them. */
export interface RoundCollector<A> {
  /** Whether the client has had any of it. */
  readonly hasDelivered: boolean;
  /** The rest will never be read. */
  readonly isAbandoned: boolean;
  /** @throws UpstreamError when the answer breaks off */
  collectRound(completion: A): Promise<RoundOutput>;
  recordSearch(search: SearchStatus): Promise<void> | undefined;
  cite(results: readonly SearchResult[]): Promise<void> | undefined;
  /** @param reason why the last round ended */
  end(reason: string): Promise<void> | undefined;
}

/** A name that no function of the caller has. */
export function chooseToolName(body: ChatBody): string {
  let name = WEB_SEARCH;
  for (let i = 2; hasFunction(body, name); i++) name = `${WEB_SEARCH}_${i}`;
  return name;
}

function createSearchTool(name: string): JsonObject {
  const description =
    'Searches the web. Use it for what is recent, or what you do not know for certain. The answer has the addresses and texts of pages; name those that you use as [title](address).';
  const query = { type: 'string', description: 'What to search for, in a few words or as a question' };
  const parameters = { type: 'object', properties: { query }, required: ['query'], additionalProperties: false };
  return { type: 'function', function: { name, description, parameters } };
}

/** The request with the tool. A choice that the caller has made holds until the model has called one. */
export function addSearchTool(
  body: ChatBody,
  name: string,
  { first, later }: { first: boolean; later: boolean },
): ChatBody {
  const tools = [...(body.tools ?? []), createSearchTool(name)];
  if (later) return { ...relaxToolChoice(body), tools };
  return first ? { ...body, tools, tool_choice: { type: 'function', function: { name } } } : { ...body, tools };
}

/**
 * The request for a model that is to search no more. A conversation with calls in it needs a declaration of tools, at
 * some upstreams: the search then stays declared, but may not be called.
 */
export function disableSearchTool(body: ChatBody, name: string, { parameters }: Endpoint): ChatBody {
  if (body.tools?.length) return relaxToolChoice(body);
  return parameters.includes('tool_choice') ? { ...body, tools: [createSearchTool(name)], tool_choice: 'none' } : body;
}

/** The demanded call has been made. */
function relaxToolChoice(body: ChatBody): ChatBody {
  const { tool_choice: choice } = body;
  const isCallRequired = choice === 'required' || (typeof choice === 'object' && choice !== null);
  return isCallRequired ? { ...body, tool_choice: 'auto' } : body;
}

/** The model's turn, for the next round. */
export function toAssistantMessage(name: string, { content, reasoningDetails, calls }: RoundOutput): JsonObject {
  return {
    role: 'assistant',
    content: content === '' ? null : content,
    ...(reasoningDetails.length > 0 ? { reasoning_details: reasoningDetails } : {}),
    tool_calls: calls.map(({ id, arguments: args }) => ({
      id,
      type: 'function',
      function: { name, arguments: parseSearchQuery(args) === undefined ? '{}' : args },
    })),
  };
}

/** The query; undefined when the model gave none. */
export function parseSearchQuery(text: string): string | undefined {
  try {
    const { query } = JSON.parse(text);
    return typeof query === 'string' && query.trim() !== '' ? query : undefined;
  } catch {
    return undefined;
  }
}
