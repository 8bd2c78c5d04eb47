/**
 * Signatures with which Gemini continues its reasoning after a call. Clients get them, and send them back, as encrypted
 * reasoning in OpenRouter's format (https://openrouter.ai/docs/use-cases/reasoning-tokens), with the id of the call.
 */
import { isJsonObject, type JsonObject } from '#kernel';
import { GEMINI_FORMAT } from '../chat/reasoning-format.ts';

/** Separates the model from its signature. Neither contains this character. */
const SEPARATOR = ':';

/** @param index among the signatures of the completion */
export function toSignatureDetail(index: number, call: { readonly id: string }, signature: string, model: string) {
  const data = `${model}${SEPARATOR}${signature}`;
  return { type: 'reasoning.encrypted', data, id: call.id, format: GEMINI_FORMAT, index };
}

/** Returns the signatures that this model made, by the ids of the calls. */
export function toSignatures(details: unknown, model: string): ReadonlyMap<unknown, string> {
  const prefix = `${model}${SEPARATOR}`;
  const all: readonly unknown[] = Array.isArray(details) ? details : [];
  return new Map(
    all
      .filter(isJsonObject)
      .flatMap(({ format, id, data }: JsonObject): [unknown, string][] =>
        format === GEMINI_FORMAT && typeof data === 'string' && data.startsWith(prefix)
          ? [[id, data.slice(prefix.length)]]
          : [],
      ),
  );
}
