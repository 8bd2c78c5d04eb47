/**
 * Lists of models, of which a later one serves the request if the ones before it cannot:
 * https://openrouter.ai/docs/guides/routing/model-fallbacks
 */
import { InvalidRequestError } from '../errors.ts';
import { assertNotPrivate } from './preferences.ts';

/** The models of a request. `model` comes first, whether or not `models` has it as well. */
export interface RequestedModels {
  readonly model: string;
  readonly models?: readonly string[] | null;
}

/**
 * Returns the result of each model of the request, in their order and without those that cannot serve it.
 * @param select throws an InvalidRequestError if a model does not exist, has retired or cannot serve the request
 * @throws InvalidRequestError 400 if a model is private; that of the first model if no model can serve the request
 */
export function selectModels<T>(
  { model, models }: RequestedModels,
  select: (model: string) => T,
): readonly [T, ...T[]] {
  if (!models?.length) return [select(model)];
  const names = [...new Set([model, ...models])];
  for (const name of names) assertNotPrivate(name);
  const selected: T[] = [];
  let firstError: unknown;
  for (const name of names) {
    try {
      selected.push(select(name));
    } catch (error) {
      if (!(error instanceof InvalidRequestError)) throw error;
      firstError ??= error;
    }
  }
  const [first, ...fallbacks] = selected;
  if (first === undefined) throw firstError;
  return [first, ...fallbacks];
}
