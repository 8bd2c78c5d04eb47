/** Providers in the format of the data file. Their capabilities are code, which is selected by the protocol. */
import type { AnyModelFile } from './data-files.ts';
import { type ErrorRuleFile, errorRule } from './error-rules.ts';
import { LISTING_PROVIDERS } from './listing-providers.ts';
import { DISCONNECT_BEHAVIORS, type DisconnectBehavior, describeModel } from './model-file.ts';
import { assertEnclaves } from './private-models.ts';
import {
  count,
  createDataFileError,
  DataFileError,
  enumRule,
  findDuplicate,
  isText,
  listRule,
  mapRule,
  objectRule,
  optionalRule,
  patternRule,
  predicateRule,
  text,
  texts,
  toFieldLocation,
  withParent,
} from './validation-rules.ts';

export interface CredentialFile {
  readonly in: 'header' | 'query';
  /** Name of the header or query parameter. */
  readonly name: string;
  /** Text before the key, such as `Bearer `. */
  readonly prefix?: string;
}

/** What responses of a provider report about the provider's bill. Paths are dotted, such as `usage.cost`. */
export interface BillFile {
  /** Path of the cost of the call in USD. */
  readonly cost?: string;
  /**
   * Path of a flag that the operator's own account at another provider pays for the call, so that the cost is a fee.
   */
  readonly paidElsewhere?: string;
  /** Paths of conditions of the price, such as a tier, each with the values to which the catalogue's prices apply. */
  readonly terms?: Readonly<Record<string, readonly string[]>>;
  /** Path of the total of all tokens, and of its disjoint parts, all of which are charged. */
  readonly tokens?: { readonly total: string; readonly parts: readonly string[] };
}

/** How a provider lists its models. */
export interface ModelListFile {
  /** Path of a free GET request, relative to the base URL, with the query that selects all models. */
  readonly path: string;
  /** The provider that defined the format of the response: one of `LISTING_PROVIDERS`. */
  readonly format: string;
}

export interface ProviderFile {
  /** The `upstream` of endpoints refers to this slug. */
  readonly slug: string;
  /**
   * `openai` and `data` require no code: OpenAI-compatible APIs, and data providers whose lookups describe their calls.
   */
  readonly protocol: string;
  /** Prefix of the provider's settings: `<env>_BASE_URL`, `<env>_API_KEY`. */
  readonly env: string;
  /** URL of the provider's API, without a trailing slash. */
  readonly baseUrl: string;
  /** Path of the fake provider in the sandbox. */
  readonly sandboxPath: string;
  readonly onDisconnect: DisconnectBehavior;
  /** Maximum number of choices per request; undefined if it is the same as that of the API. */
  readonly maxChoices?: number;
  /**
   * Path of a GET request, relative to the base URL, that is free and that gets 401 if the key is invalid. Undefined if
   * it has none: its public lists of models, for example, accept any key.
   */
  readonly keyCheck?: string;
  readonly modelList?: ModelListFile;
  /** How the key is sent with data lookups. The other protocols define that themselves. */
  readonly credential?: CredentialFile;
  /** What its error responses mean, if that differs from the usual meanings of their statuses and codes. */
  readonly errors?: readonly ErrorRuleFile[];
  readonly bill?: BillFile;
  /** Fields of chat and Responses requests that are always sent, because the price depends on them. */
  readonly always?: Readonly<Record<string, string>>;
  /** Differences from other providers of the same protocol. */
  readonly dialect?: {
    /** Name of the field for the output limit; `max_tokens` by default. */
    readonly limit?: 'max_tokens' | 'max_completion_tokens';
    /** Name of the field for the reasoning effort; `reasoning_effort` by default. */
    readonly reasoning?: 'reasoning_effort' | 'reasoning';
    /** Supported message fields in addition to role, content and tool calls; `name` by default. */
    readonly messages?: readonly string[];
    /** Format of a web search by the model's own provider in chats; without it, such a chat needs the Responses API. */
    readonly search?: 'openrouter';
    /** Role of a developer's messages; `developer` by default. */
    readonly developerRole?: 'system';
  };
}

const responsePath = patternRule('a dotted path', /^[\w-]+(\.[\w-]+)*$/);

const provider = objectRule({
  slug: patternRule('lower case letters, digits and hyphens', /^[a-z0-9-]+$/),
  protocol: text,
  env: patternRule('upper case letters, digits and underscores', /^[A-Z][A-Z0-9_]*$/),
  baseUrl: patternRule('a URL without a trailing slash', /^https?:\/\/.*[^/]$/),
  sandboxPath: patternRule('a path', /^\/.*[^/]$/),
  onDisconnect: enumRule(DISCONNECT_BEHAVIORS),
  maxChoices: optionalRule(count),
  keyCheck: optionalRule(patternRule('a path', /^\/.*[^/]$/)),
  modelList: optionalRule(
    objectRule({ path: patternRule('a path', /^\/.*[^/]$/), format: enumRule(LISTING_PROVIDERS) }),
  ),
  credential: optionalRule(
    objectRule({
      in: enumRule(['header', 'query']),
      name: patternRule('letters, digits, hyphens and underscores', /^[\w-]+$/),
      prefix: optionalRule(patternRule('printable ASCII', /^[ -~]+$/)),
    }),
  ),
  errors: optionalRule(listRule(errorRule)),
  bill: optionalRule(
    objectRule({
      cost: optionalRule(responsePath),
      paidElsewhere: optionalRule(responsePath),
      terms: optionalRule(mapRule(texts)),
      tokens: optionalRule(objectRule({ total: responsePath, parts: listRule(responsePath) })),
    }),
  ),
  always: optionalRule(mapRule(text)),
  dialect: optionalRule(
    objectRule({
      limit: optionalRule(enumRule(['max_tokens', 'max_completion_tokens'])),
      reasoning: optionalRule(enumRule(['reasoning_effort', 'reasoning'])),
      messages: optionalRule(predicateRule('a list of names', (it) => Array.isArray(it) && it.every(isText))),
      search: optionalRule(enumRule(['openrouter'])),
      developerRole: optionalRule(enumRule(['system'])),
    }),
  ),
});

/** The protocols of queues and enclaves have no free request that requires a valid key. */
const PROTOCOLS_WITHOUT_KEY_CHECK: ReadonlySet<string> = new Set(['fal', 'ehbp']);
const PROTOCOLS_WITH_MODEL_LIST: ReadonlySet<string> = new Set(['openai', 'anthropic', 'google']);

/** @throws DataFileError with the provider and the field */
export function parseProviders(data: unknown): readonly ProviderFile[] {
  if (!Array.isArray(data)) throw new DataFileError('it must be a list of providers', []);
  for (const [i, entry] of data.entries()) {
    const location = toFieldLocation(isText(entry?.slug) ? `provider "${entry.slug}"` : `provider ${i + 1}`, i);
    provider(entry, location);
    const unsupported = findUnsupportedField(entry);
    if (unsupported)
      throw createDataFileError(
        withParent(location, unsupported),
        `is not supported by the protocol ${entry.protocol}`,
      );
  }
  for (const field of ['slug', 'env'] as const) {
    const twice = findDuplicate(data.map((entry: ProviderFile) => entry[field]));
    if (twice) throw new DataFileError(`provider with the ${field} "${twice[0]}" is defined twice`, [twice[1], field]);
  }
  return data;
}

function findUnsupportedField({ protocol, keyCheck, modelList }: ProviderFile): keyof ProviderFile | undefined {
  if (keyCheck !== undefined && PROTOCOLS_WITHOUT_KEY_CHECK.has(protocol)) return 'keyCheck';
  if (modelList !== undefined && !PROTOCOLS_WITH_MODEL_LIST.has(protocol)) return 'modelList';
  return undefined;
}

/**
 * Checks that every endpoint refers to an existing provider that may serve it. Sets `onDisconnect` and `maxChoices` to
 * the values of the provider if the endpoint has none.
 * @throws DataFileError with a path that starts with the index of the model
 */
export function linkProviders(
  models: readonly AnyModelFile[],
  providers: readonly ProviderFile[],
): readonly AnyModelFile[] {
  assertEnclaves(models, providers);
  const bySlug = new Map(providers.map((file) => [file.slug, file]));
  return models.map((model, i) => ({
    ...model,
    endpoints: model.endpoints.map((endpoint, e) => {
      const owner = bySlug.get(endpoint.upstream);
      if (owner) {
        const maxChoices = endpoint.maxChoices ?? owner.maxChoices;
        return {
          ...endpoint,
          onDisconnect: endpoint.onDisconnect ?? owner.onDisconnect,
          ...(maxChoices === undefined ? {} : { maxChoices }),
        };
      }
      const location = withParent(toFieldLocation(describeModel(model, i), i), 'endpoints', e, 'upstream');
      throw createDataFileError(location, `names the provider "${endpoint.upstream}", which does not exist`);
    }),
  })) as readonly AnyModelFile[];
}
