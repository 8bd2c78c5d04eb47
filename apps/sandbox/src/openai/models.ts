/** The providers that speak OpenAI's chat completions, and their models: independent of the product's catalogue. */
import { offered, type SandboxModel } from '../provider/model.ts';
import type { Call, Routes } from '../router.ts';
import { assertKey, refusal } from './errors.ts';
import { DEEPINFRA, GROQ, type ModelOffer, type Offers, OPENAI, OPENROUTER, TINFOIL } from './offers.ts';

export interface OpenAiModel extends SandboxModel, Omit<ModelOffer, 'usd'> {}

export interface OpenAiProvider {
  readonly name: string;
  readonly models: ReadonlyMap<string, OpenAiModel>;
  /** Parameters that it takes beside OpenAI's. */
  readonly more: ReadonlySet<string>;
  /** Parameters of OpenAI's that it does not know. */
  readonly lacks: ReadonlySet<string>;
  /** The field that has the model's reasoning; undefined where it is not returned. */
  readonly thoughts: 'reasoning' | 'reasoning_content' | undefined;
}

const OPEN_WEIGHTS = ['top_k', 'min_p', 'repetition_penalty'];
/** Documented by vendors that copied OpenAI's API before it had this name for the limit. */
const NEWER = ['max_completion_tokens'];
const OF_OPENROUTER = [...OPEN_WEIGHTS, 'provider', 'plugins', 'reasoning', 'usage', 'models'];

export const OPENAI_ITSELF = provider('openai', OPENAI);

export const PROVIDERS: readonly OpenAiProvider[] = [
  OPENAI_ITSELF,
  provider('openrouter', OPENROUTER, { more: OF_OPENROUTER, lacks: NEWER, thoughts: 'reasoning' }),
  provider('groq', GROQ, { more: OPEN_WEIGHTS, thoughts: 'reasoning' }),
  provider('deepinfra', DEEPINFRA, { more: OPEN_WEIGHTS, lacks: NEWER, thoughts: 'reasoning_content' }),
];

/** What runs in enclaves, one model in each. */
export const ENCLAVED: readonly OpenAiProvider[] = Object.entries(TINFOIL).map(([id, offer]) =>
  provider('tinfoil', { [id]: offer }, { more: OPEN_WEIGHTS, thoughts: 'reasoning_content' }),
);

interface Habits {
  readonly more?: readonly string[];
  readonly lacks?: readonly string[];
  readonly thoughts?: OpenAiProvider['thoughts'];
}

function provider(name: string, offers: Offers, { more = [], lacks = [], thoughts }: Habits = {}): OpenAiProvider {
  return { name, models: offered<ModelOffer>(offers), more: new Set(more), lacks: new Set(lacks), thoughts };
}

/** 2024-07-18: the list wants a date, and nothing depends on it. */
const CREATED = 1_721_260_800;

export function findModel({ models }: OpenAiProvider, id: string): OpenAiModel {
  const model = models.get(id);
  if (model) return model;
  throw refusal(404, `The model \`${id}\` does not exist or you do not have access to it.`, null, 'model_not_found');
}

/** @param others models that do not chat */
export function modelRoutes(of: OpenAiProvider, others: readonly string[] = []): Routes {
  const listed = (id: string) => ({ id, object: 'model', created: CREATED, owned_by: 'system' });
  return {
    [`GET /${of.name}/v1/models`]: (call: Call) => {
      assertKey(call);
      call.json(200, { object: 'list', data: [...of.models.keys(), ...others].map(listed) });
    },
    [`GET /${of.name}/v1/models/:id`]: (call: Call) => {
      assertKey(call);
      const { parameter: id } = call;
      call.json(200, listed(others.includes(id) ? id : findModel(of, id).id));
    },
  } as Routes;
}
