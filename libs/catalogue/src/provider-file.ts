/** Providers in the format of the data file. Their capabilities are code, which is selected by the protocol. */
import { z } from 'zod';
import { errorRule } from './error-rules.ts';
import { count, listSchema, mapSchema, patternSchema, text, texts } from './field-schemas.ts';
import { LISTING_PROVIDERS } from './listing-providers.ts';
import type { AnyModelFile } from './media-file.ts';
import { DISCONNECT_BEHAVIORS } from './model-file.ts';
import {
  addCheck,
  findDuplicates,
  getFields,
  nameEntries,
  type ReportProblem,
  type Valid,
  validate,
} from './validation.ts';

const path = patternSchema('a path', /^\/.*[^/]$/);
const responsePath = patternSchema('a dotted path', /^[\w-]+(\.[\w-]+)*$/);

const credential = z.strictObject({
  in: z.enum(['header', 'query']),
  name: patternSchema('letters, digits, hyphens and underscores', /^[\w-]+$/).describe(
    'Name of the header or query parameter.',
  ),
  prefix: patternSchema('printable ASCII', /^[ -~]+$/)
    .optional()
    .describe('Text before the key, such as `Bearer `.'),
});
export type CredentialFile = Valid<typeof credential>;

const bill = z.strictObject({
  cost: responsePath.optional().describe('Path of the cost of the call in USD.'),
  paidElsewhere: responsePath
    .optional()
    .describe(
      "Path of a flag that the operator's own account at another provider pays for the call, so that the cost is a fee.",
    ),
  terms: mapSchema(texts)
    .optional()
    .describe(
      "Paths of conditions of the price, such as a tier, each with the values to which the catalogue's prices apply.",
    ),
  tokens: z
    .strictObject({ total: responsePath, parts: listSchema(responsePath) })
    .optional()
    .describe('Path of the total of all tokens, and of its disjoint parts, all of which are charged.'),
});

/** How a provider lists its models. */
const modelList = z.strictObject({
  path: path.describe('Path of a free GET request, relative to the base URL, with the query that selects all models.'),
  format: z.enum(LISTING_PROVIDERS).describe('The provider that defined the format of the response.'),
});
export type ModelListFile = Valid<typeof modelList>;

const dialect = z.strictObject({
  limit: z
    .enum(['max_tokens', 'max_completion_tokens'])
    .optional()
    .describe('Name of the field for the output limit; `max_tokens` by default.'),
  reasoning: z
    .enum(['reasoning_effort', 'reasoning'])
    .optional()
    .describe('Name of the field for the reasoning effort; `reasoning_effort` by default.'),
  messages: z
    .array(text, 'must be a list of names')
    .optional()
    .describe('Supported message fields in addition to role, content and tool calls; `name` by default.'),
  search: z
    .enum(['openrouter'])
    .optional()
    .describe(
      "Format of a web search by the model's own provider in chats; without it, such a chat needs the Responses API.",
    ),
  developerRole: z.enum(['system']).optional().describe("Role of a developer's messages; `developer` by default."),
});

const provider = z.strictObject({
  slug: patternSchema('lower case letters, digits and hyphens', /^[a-z0-9-]+$/).describe(
    'The `upstream` of endpoints refers to this slug.',
  ),
  protocol: text.describe(
    '`openai` and `data` require no code: OpenAI-compatible APIs, and data providers whose lookups describe their ' +
      'calls.',
  ),
  env: patternSchema('upper case letters, digits and underscores', /^[A-Z][A-Z0-9_]*$/).describe(
    "Prefix of the provider's settings: `<env>_BASE_URL`, `<env>_API_KEY`.",
  ),
  baseUrl: patternSchema('a URL without a trailing slash', /^https?:\/\/.*[^/]$/).describe(
    "URL of the provider's API.",
  ),
  sandboxPath: path.describe('Path of the fake provider in the sandbox.'),
  onDisconnect: z.enum(DISCONNECT_BEHAVIORS),
  maxChoices: count
    .optional()
    .describe('Maximum number of choices per request; undefined if it is the same as that of the API.'),
  keyCheck: path
    .optional()
    .describe(
      'Path of a GET request, relative to the base URL, that is free and that gets 401 if the key is invalid. ' +
        'Undefined if it has none: its public lists of models, for example, accept any key.',
    ),
  modelList: modelList.optional(),
  credential: credential
    .optional()
    .describe('How the key is sent with data lookups. The other protocols define that themselves.'),
  errors: listSchema(errorRule)
    .optional()
    .describe('What its error responses mean, if that differs from the usual meanings of their statuses and codes.'),
  bill: bill
    .optional()
    .describe("What responses report about the provider's bill. Paths are dotted, such as `usage.cost`."),
  always: mapSchema(text)
    .optional()
    .describe('Fields of chat and Responses requests that are always sent, because the price depends on them.'),
  dialect: dialect.optional().describe('Differences from other providers of the same protocol.'),
});
export type ProviderFile = Valid<typeof provider>;

export const providers = z.array(addCheck(provider, checkProtocol), 'must be a list of providers');

/** The protocols of queues and enclaves have no free request that requires a valid key. */
const PROTOCOLS_WITHOUT_KEY_CHECK: ReadonlySet<string> = new Set(['fal', 'ehbp']);
const PROTOCOLS_WITH_MODEL_LIST: ReadonlySet<string> = new Set(['openai', 'anthropic', 'google']);

function checkProtocol({ protocol, keyCheck, modelList }: ProviderFile, report: ReportProblem): void {
  const problem = `is not supported by the protocol ${protocol}`;
  if (keyCheck !== undefined && PROTOCOLS_WITHOUT_KEY_CHECK.has(protocol)) report(problem, 'keyCheck');
  if (modelList !== undefined && !PROTOCOLS_WITH_MODEL_LIST.has(protocol)) report(problem, 'modelList');
}

/** @throws DataFileError with the provider and the field */
export function parseProviders(data: unknown): readonly ProviderFile[] {
  const duplicates = ['slug', 'env'].flatMap((field) =>
    findDuplicates(getFields(data, field)).map(([value, i]) => ({
      message: `provider with the ${field} "${value}" is defined twice`,
      path: [i, field],
    })),
  );
  return validate(
    providers,
    data,
    nameEntries(data, 'provider', ({ slug }) => slug),
    duplicates,
  );
}

/** Reports the endpoints that refer to a provider that does not exist. */
export function checkUpstreams(
  models: readonly AnyModelFile[],
  providerFiles: readonly ProviderFile[],
  report: ReportProblem,
): void {
  const slugs = new Set(providerFiles.map(({ slug }) => slug));
  for (const [i, { endpoints }] of models.entries())
    for (const [e, { upstream }] of endpoints.entries())
      if (!slugs.has(upstream))
        report(`names the provider "${upstream}", which does not exist`, i, 'endpoints', e, 'upstream');
}

/** Sets `onDisconnect` and `maxChoices` of endpoints that have none to the values of their providers. */
export function linkProviders(
  models: readonly AnyModelFile[],
  providerFiles: readonly ProviderFile[],
): readonly AnyModelFile[] {
  const bySlug = new Map(providerFiles.map((file) => [file.slug, file]));
  return models.map((model) => ({
    ...model,
    endpoints: model.endpoints.map((endpoint) => {
      const owner = bySlug.get(endpoint.upstream);
      const maxChoices = endpoint.maxChoices ?? owner?.maxChoices;
      return {
        ...endpoint,
        onDisconnect: endpoint.onDisconnect ?? owner?.onDisconnect,
        ...(maxChoices === undefined ? {} : { maxChoices }),
      };
    }),
  })) as readonly AnyModelFile[];
}
