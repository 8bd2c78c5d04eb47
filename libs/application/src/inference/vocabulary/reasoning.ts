/** What a caller requests of a model's reasoning: OpenAI's effort, or the object that OpenRouter's clients send. */
import { UnservableRequest } from '../../failures.ts';

export const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;
export type Effort = (typeof EFFORTS)[number];

type Fields = Readonly<Record<string, unknown>>;

/** OpenRouter's object: https://openrouter.ai/docs/use-cases/reasoning-tokens. Of effort and tokens there is one at most. */
export interface Reasoning {
  readonly effort?: Effort;
  readonly max_tokens?: number;
  readonly enabled?: boolean;
  /** Nothing of it is shown. */
  readonly exclude?: boolean;
}

/**
 * Reads `reasoning` and `reasoning_effort`; undefined when neither says anything. A number of tokens says more than a word.
 * @throws UnservableRequest 400 that names the field
 */
export function requestedReasoning({ reasoning, reasoning_effort }: Fields): Reasoning | undefined {
  if ((reasoning ?? reasoning_effort ?? undefined) === undefined) return undefined;
  if (typeof (reasoning ?? {}) !== 'object' || Array.isArray(reasoning)) throw wrong('reasoning', 'an object');
  const fields = (reasoning ?? {}) as Fields;
  const tokens = read(fields.max_tokens, 'reasoning.max_tokens', 'a whole number from 0', isCount);
  const word = reasoning_effort ?? undefined;
  const effort =
    read(word, 'reasoning_effort', `one of ${EFFORTS.join(', ')}`, isEffort) ??
    read(fields.effort, 'reasoning.effort', `one of ${EFFORTS.join(', ')}`, isEffort);
  const enabled = read(fields.enabled, 'reasoning.enabled', 'a boolean', isFlag);
  const exclude = read(fields.exclude, 'reasoning.exclude', 'a boolean', isFlag);
  const requested: Reasoning = {
    ...(tokens === undefined ? {} : { max_tokens: tokens }),
    ...(effort === undefined || tokens !== undefined ? {} : { effort }),
    ...(enabled === undefined ? {} : { enabled }),
    ...(exclude === undefined ? {} : { exclude }),
  };
  return Object.keys(requested).length === 0 ? undefined : requested;
}

function read<T>(value: unknown, field: string, must: string, is: (value: unknown) => value is T): T | undefined {
  if (value === undefined || value === null) return undefined;
  if (!is(value)) throw wrong(field, must);
  return value;
}

const isFlag = (value: unknown): value is boolean => typeof value === 'boolean';
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isEffort = (value: unknown): value is Effort => EFFORTS.includes(value as Effort);

function wrong(field: string, must: string): UnservableRequest {
  return new UnservableRequest(400, `${field} must be ${must}`, field);
}
