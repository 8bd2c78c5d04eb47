/** Vendors as they stand in a data file: what each is. What it can do is code, found by its protocol. */
import type { AnyModelFile } from './data-files.ts';
import { DISCONNECT_BEHAVIORS, type DisconnectBehavior, describeModel } from './model-file.ts';
import { assertEnclaves } from './private-models.ts';
import {
  createDataFileError,
  DataFileError,
  enumRule,
  findDuplicate,
  isText,
  objectRule,
  optionalRule,
  patternRule,
  predicateRule,
  text,
  toFieldLocation,
  withParent,
} from './validation-rules.ts';

export interface CredentialFile {
  readonly in: 'header' | 'query';
  /** Of the header, or of the query's field. */
  readonly name: string;
  /** What stands before the key, such as `Bearer `. */
  readonly prefix?: string;
}

export interface ProviderFile {
  /** The name by which endpoints of models refer to it: their `upstream`. */
  readonly slug: string;
  /** What it speaks. `openai` is OpenAI's, and needs no code; nor does `data`, whose lookups say how they are asked. */
  readonly protocol: string;
  /** Its settings begin with this: `<env>_BASE_URL`, `<env>_API_KEY`. */
  readonly env: string;
  /** Its own address, without a slash at the end. */
  readonly baseUrl: string;
  /** Where the sandbox plays it. */
  readonly sandboxPath: string;
  readonly onDisconnect: DisconnectBehavior;
  /** How its key is sent with lookups of data; the protocols of models know theirs. */
  readonly credential?: CredentialFile;
  /** Where it differs from others that speak its protocol. */
  readonly dialect?: {
    /** What it calls the most output; `max_tokens` where nothing is said. */
    readonly limit?: 'max_tokens' | 'max_completion_tokens';
    /** Its name for the reasoning effort; `reasoning_effort` where it is omitted. */
    readonly reasoning?: 'reasoning_effort' | 'reasoning';
    /** Fields of a message that it knows beside role, content and calls of tools; `name` where nothing is said. */
    readonly messages?: readonly string[];
  };
}

const provider = objectRule({
  slug: patternRule('lower case letters, digits and hyphens', /^[a-z0-9-]+$/),
  protocol: text,
  env: patternRule('upper case letters, digits and underscores', /^[A-Z][A-Z0-9_]*$/),
  baseUrl: patternRule('an address without a slash at its end', /^https?:\/\/.*[^/]$/),
  sandboxPath: patternRule('a path', /^\/.*[^/]$/),
  onDisconnect: enumRule(DISCONNECT_BEHAVIORS),
  credential: optionalRule(
    objectRule({
      in: enumRule(['header', 'query']),
      name: patternRule('letters, digits, hyphens and underscores', /^[\w-]+$/),
      prefix: optionalRule(patternRule('printable ASCII', /^[ -~]+$/)),
    }),
  ),
  dialect: optionalRule(
    objectRule({
      limit: optionalRule(enumRule(['max_tokens', 'max_completion_tokens'])),
      reasoning: optionalRule(enumRule(['reasoning_effort', 'reasoning'])),
      messages: optionalRule(predicateRule('a list of names', (it) => Array.isArray(it) && it.every(isText))),
    }),
  ),
});

/** @throws DataFileError that names the provider and the field */
export function parseProviders(data: unknown): readonly ProviderFile[] {
  if (!Array.isArray(data)) throw new DataFileError('it must be a list of providers', []);
  for (const [i, entry] of data.entries())
    provider(entry, toFieldLocation(isText(entry?.slug) ? `provider "${entry.slug}"` : `provider ${i + 1}`, i));
  for (const field of ['slug', 'env'] as const) {
    const twice = findDuplicate(data.map((entry: ProviderFile) => entry[field]));
    if (twice) throw new DataFileError(`provider with the ${field} "${twice[0]}" is there twice`, [twice[1], field]);
  }
  return data;
}

/**
 * Every endpoint is reached by a provider that is there and can serve it, and has its habits where it says nothing else.
 * @throws DataFileError whose path begins with the index of the model
 */
export function linkProviders(
  models: readonly AnyModelFile[],
  providers: readonly ProviderFile[],
): readonly AnyModelFile[] {
  assertEnclaves(models, providers);
  const disconnectBehaviors = new Map(providers.map(({ slug, onDisconnect }) => [slug, onDisconnect]));
  return models.map((model, i) => ({
    ...model,
    endpoints: model.endpoints.map((endpoint, e) => {
      const onDisconnect = endpoint.onDisconnect ?? disconnectBehaviors.get(endpoint.upstream);
      if (disconnectBehaviors.has(endpoint.upstream)) return { ...endpoint, onDisconnect };
      const location = withParent(toFieldLocation(describeModel(model, i), i), 'endpoints', e, 'upstream');
      throw createDataFileError(location, `names the provider "${endpoint.upstream}", which is not there`);
    }),
  })) as readonly AnyModelFile[];
}
