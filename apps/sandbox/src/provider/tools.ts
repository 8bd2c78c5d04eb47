/** Tools that a request offers: which one is called, and with what. */
import { invalidDirectiveError } from './directive.ts';
import { createSample, PICK_FIRST } from './schemas.ts';

export interface Tool {
  readonly name: string;
  /** JSON schema of its arguments; undefined for one that takes plain text. */
  readonly schema: unknown;
  /** The provider executes it by itself, so often at most. */
  readonly maxProviderUses?: number;
}

export interface Toolbox {
  readonly tools: readonly Tool[];
  /** What the request says: `auto` leaves it to the model, `required` wants any, an object that one. */
  readonly choice: 'auto' | 'none' | 'required' | { readonly name: string };
  /** Whether an answer may have several calls. */
  readonly allowsParallelCalls: boolean;
  /** How often tools were called and answered since the user last spoke. */
  readonly rounds: number;
}

/** @throws InvalidDirectiveError when the directive wants a tool that was not offered */
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
  // What was called before may have been taken away since, and agents ask for a title beside the conversation.
  if (choice === 'auto' && !requestedTool && (rounds > 0 || tools.length === 0)) return undefined;
  if (choice === 'none' || (choice === 'auto' && (requestedName === undefined || rounds >= times))) return undefined;
  if (!requestedTool) throw invalidDirectiveError(`the request has no tool "${requestedName}"`);
  return requestedTool;
}

/** Arguments that the tool's schema allows, no more than it requires; or any text. */
export function createArguments({ schema }: Tool): string {
  if (schema === undefined) return 'print("Hello")';
  return JSON.stringify(createSample(schema, PICK_FIRST));
}
