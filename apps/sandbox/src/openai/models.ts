/**
 * The providers with OpenAI's chat completions API, and their models. Both are independent of the gateway's catalogue.
 */
import { createModels, type SandboxModel } from '../provider/model.ts';
import { createModelError } from './errors.ts';
import { DEEPINFRA, GROQ, type ModelOffer, type Offers, OPENAI, OPENROUTER, TINFOIL } from './offers.ts';
import {
  GROQ_FIELDS,
  OPEN_WEIGHT_FIELDS,
  OPENAI_FIELDS,
  OPENROUTER_FIELDS,
  type ResponseFields,
} from './response-fields.ts';

export interface OpenAiModel extends SandboxModel, Omit<ModelOffer, 'usd'> {}

export interface OpenAiProvider {
  readonly name: string;
  readonly models: ReadonlyMap<string, OpenAiModel>;
  /** Parameters that the provider accepts in addition to OpenAI's. */
  readonly extraParameters: ReadonlySet<string>;
  /** Parameters of OpenAI that the provider does not support. */
  readonly unsupportedParameters: ReadonlySet<string>;
  readonly fields: ResponseFields;
  /** Values of `service_tier`. The first one is the tier of the listed prices. */
  readonly serviceTiers: readonly [string, ...string[]];
}

const OPEN_WEIGHT_PARAMETERS = ['top_k', 'min_p', 'repetition_penalty'];
/** The current name of the output limit. Some providers with OpenAI's API document only the old name. */
const NEWER_PARAMETERS = ['max_completion_tokens'];
const OPENROUTER_PARAMETERS = [...OPEN_WEIGHT_PARAMETERS, 'provider', 'plugins', 'reasoning', 'usage', 'models'];

const OPENAI_TIERS = ['default', 'auto', 'flex', 'scale', 'priority', 'fast'] as const;

export const OPENAI_PROVIDER = createProvider('openai', OPENAI);

export const PROVIDERS: readonly OpenAiProvider[] = [
  OPENAI_PROVIDER,
  createProvider('openrouter', OPENROUTER, {
    extraParameters: OPENROUTER_PARAMETERS,
    unsupportedParameters: NEWER_PARAMETERS,
    fields: OPENROUTER_FIELDS,
  }),
  createProvider('groq', GROQ, {
    extraParameters: OPEN_WEIGHT_PARAMETERS,
    fields: GROQ_FIELDS,
    serviceTiers: ['on_demand', 'auto', 'flex', 'performance'],
  }),
  createProvider('deepinfra', DEEPINFRA, {
    extraParameters: OPEN_WEIGHT_PARAMETERS,
    unsupportedParameters: NEWER_PARAMETERS,
    fields: { ...OPEN_WEIGHT_FIELDS, cost: 'estimated_cost' },
    serviceTiers: ['default', 'priority'],
  }),
];

/** One provider for each enclave, with the one model of that enclave. */
export const ENCLAVE_PROVIDERS: readonly OpenAiProvider[] = Object.entries(TINFOIL).map(([id, modelOffer]) =>
  createProvider(
    'tinfoil',
    { [id]: modelOffer },
    { extraParameters: OPEN_WEIGHT_PARAMETERS, fields: OPEN_WEIGHT_FIELDS },
  ),
);

interface ProviderOptions {
  readonly extraParameters?: readonly string[];
  readonly unsupportedParameters?: readonly string[];
  readonly fields?: ResponseFields;
  readonly serviceTiers?: OpenAiProvider['serviceTiers'];
}

function createProvider(
  name: string,
  offers: Offers,
  {
    extraParameters = [],
    unsupportedParameters = [],
    fields = OPENAI_FIELDS,
    serviceTiers = OPENAI_TIERS,
  }: ProviderOptions = {},
): OpenAiProvider {
  return {
    name,
    models: createModels<ModelOffer>(offers),
    extraParameters: new Set(extraParameters),
    unsupportedParameters: new Set(unsupportedParameters),
    fields,
    serviceTiers,
  };
}

export function findModel({ name, models }: OpenAiProvider, id: string): OpenAiModel {
  const model = models.get(id);
  if (model) return model;
  throw createModelError(name, id);
}
