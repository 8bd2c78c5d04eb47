/** Tools that a request offers: which one is called, and with what. */
import { misunderstood } from './directive.ts';
import { LEAST, sampleOf } from './schemas.ts';

export interface Tool {
  readonly name: string;
  /** JSON schema of its arguments; undefined for one that takes plain text. */
  readonly schema: unknown;
  /** The provider executes it by itself, so often at most. */
  readonly ownUses?: number;
}

export interface Toolbox {
  readonly tools: readonly Tool[];
  /** What the request says: `auto` leaves it to the model, `required` wants any, an object that one. */
  readonly choice: 'auto' | 'none' | 'required' | { readonly name: string };
  /** Whether an answer may have several calls. */
  readonly parallel: boolean;
  /** How often tools were called and answered since the user last spoke. */
  readonly rounds: number;
}

/** @throws MisunderstoodDirective when the directive wants a tool that was not offered */
export function chosenTool(
  { tools, choice, rounds }: Toolbox,
  wanted: string | undefined,
  times = 1,
): Tool | undefined {
  if (typeof choice === 'object') return tools.find(({ name }) => name === choice.name);
  const given = wanted === undefined || wanted === 'any' ? tools[0] : tools.find(({ name }) => name === wanted);
  // What was called before may have been taken away since, and agents ask for a title beside the conversation.
  if (choice === 'auto' && !given && (rounds > 0 || tools.length === 0)) return undefined;
  if (choice === 'none' || (choice === 'auto' && (wanted === undefined || rounds >= times))) return undefined;
  if (!given) throw misunderstood(`the request has no tool "${wanted}"`);
  return given;
}

/** Arguments that the tool's schema allows, no more than it requires; or any text. */
export function argumentsFor({ schema }: Tool): string {
  if (schema === undefined) return 'print("Hello")';
  return JSON.stringify(sampleOf(schema, LEAST));
}
