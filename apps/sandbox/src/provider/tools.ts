/** Selects the tool that is called, and its arguments. */
import { invalidDirectiveError } from './directive.ts';
import { createSample, PICK_FIRST } from './schemas.ts';

export interface Tool {
  readonly name: string;
  /** JSON schema of the arguments; undefined if the tool takes plain text. */
  readonly schema: unknown;
  /** The provider executes the tool itself, at most this often. */
  readonly maxProviderUses?: number;
}

/** A web search by a provider whose requests cannot limit the number of searches. */
export const UNLIMITED_SEARCH: Tool = {
  name: 'web_search',
  schema: {},
  maxProviderUses: Number.POSITIVE_INFINITY,
};

export interface Toolbox {
  readonly tools: readonly Tool[];
  /** `auto` leaves the choice to the model, `required` requires any tool, an object requires that tool. */
  readonly choice: 'auto' | 'none' | 'required' | { readonly name: string };
  /** Whether a completion may have several calls. */
  readonly allowsParallelCalls: boolean;
  /** Number of rounds of calls and results since the last user message. */
  readonly rounds: number;
}

/**
 * Returns the tool to call; undefined for none.
 * @throws InvalidDirectiveError if the request does not offer the tool of the directive, and the choice is `required`,
 * or `auto` in the first round of a request with tools
 */
export function selectTool(
  { tools, choice, rounds }: Toolbox,
  requestedName: string | undefined,
  times = 1,
): Tool | undefined {
  if (typeof choice === 'object') return tools.find(({ name }) => name === choice.name);
  const requestedTool =
    requestedName === undefined || requestedName === 'any'
      ? tools[0]
      : tools.find(({ name }) => name === requestedName);
  // Agents may remove the tool after the call, or request a title for the conversation without any tools.
  if (choice === 'auto' && !requestedTool && (rounds > 0 || tools.length === 0)) return undefined;
  if (choice === 'none' || (choice === 'auto' && (requestedName === undefined || rounds >= times))) return undefined;
  if (!requestedTool) throw invalidDirectiveError(`the request has no tool "${requestedName}"`);
  return requestedTool;
}

/**
 * Returns arguments that match the tool's schema, with required properties only; or a text for a tool without a schema.
 */
export function createArguments({ schema }: Tool): string {
  if (schema === undefined) return 'print("Hello")';
  return JSON.stringify(createSample(schema, PICK_FIRST));
}
