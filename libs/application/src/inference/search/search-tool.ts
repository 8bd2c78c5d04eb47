/** The search tool of the gateway: its declaration in requests, and the calls that a model makes. */

import type { Endpoint } from '#catalogue';
import { type JsonObject } from '#kernel';
import type { SearchResult, SearchStatus } from '../../providers/web-search.ts';

import type { ChatBody } from '../chat/chat-body.ts';
import { hasFunction, WEB_SEARCH } from './search-plan.ts';

/** A call of the search tool, as the model generated it. */
export interface SearchCall {
  readonly id: string;
  /** The model's text, which should be JSON but may not be. */
  readonly arguments: string;
}

/** The output of a model in one round. */
export interface RoundOutput {
  readonly content: string;
  /** Reasoning with its signatures, which some providers require together with the results of tools. */
  readonly reasoningDetails: readonly unknown[];
  readonly calls: readonly SearchCall[];
  /** Whether the model also called tools of the client. Then no search is made: the client has to run its tools. */
  readonly hasClientCalls: boolean;
  readonly finishReason: string | undefined;
}

/** Combines the completions of all rounds into one. */
export interface RoundCollector<A> {
  /** Whether the client has received any output. */
  readonly hasDelivered: boolean;
  /** Whether no one will receive further output. */
  readonly isAbandoned: boolean;
  /** Reads the completion of a round. @throws UpstreamError if it is interrupted */
  collectRound(completion: A): Promise<RoundOutput>;
  recordSearch(search: SearchStatus): Promise<void> | undefined;
  cite(results: readonly SearchResult[]): Promise<void> | undefined;
  /** Ends the combined completion. @param reason its `finish_reason` */
  end(reason: string): Promise<void> | undefined;
}

/** Returns a name for the search tool that no function of the caller has. */
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

/**
 * Adds the search tool to a request. A `tool_choice` that requires a call applies only until a tool has been called.
 * @param first whether the model must call the search tool
 * @param later whether the model has already called a tool
 */
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
 * Prevents further searches in a request. Some providers require a declared tool in a conversation with tool calls. So
 * the search tool stays declared, with `tool_choice` `none`, if the request has no other tools and the endpoint
 * supports `tool_choice`.
 */
export function disableSearchTool(body: ChatBody, name: string, { parameters }: Endpoint): ChatBody {
  if (body.tools?.length) return relaxToolChoice(body);
  return parameters.includes('tool_choice') ? { ...body, tools: [createSearchTool(name)], tool_choice: 'none' } : body;
}

/** Sets `tool_choice` to `auto` if it requires a call, because that call has been made. */
function relaxToolChoice(body: ChatBody): ChatBody {
  const { tool_choice: choice } = body;
  const isCallRequired = choice === 'required' || (typeof choice === 'object' && choice !== null);
  return isCallRequired ? { ...body, tool_choice: 'auto' } : body;
}

/** Returns the output of a round as a message for the next round. Arguments without a query become an empty object. */
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

/** Parses the arguments of a search call; undefined if they contain no query. */
export function parseSearchQuery(text: string): string | undefined {
  try {
    const { query } = JSON.parse(text);
    return typeof query === 'string' && query.trim() !== '' ? query : undefined;
  } catch {
    return undefined; // invalid JSON
  }
}
