/** The models of the simulated Anthropic API. */
import { createModels, type PriceInUsd, type SandboxModel } from '../provider/model.ts';
import type { Routes } from '../router.ts';
import { assertHeaders, createError } from './errors.ts';

interface AnthropicOffer {
  readonly name: string;
  readonly snapshot: string;
  readonly context: number;
  readonly maxOutput: number;
  /**
   * The model decides how long it thinks. It rejects budgets and sampling parameters, and returns the text of its
   * thinking only on request.
   */
  readonly adaptive?: true;
  /** How requests disable the thinking of a model that thinks by default. */
  readonly thinkingOff?: 'disabled' | 'between_tools' | 'never';
  /**
   * The models that read its thinking, which is bound to its conversation; undefined if its thinking is not bound, and
   * all models read it. The sets of Anthropic are larger where its documentation does not state them.
   */
  readonly thinkingReaders?: readonly string[];
  /** The model rejects a `tool_choice` that forces a call. */
  readonly rejectsForcedTools?: true;
  /** The model rejects a conversation that ends with an assistant turn. */
  readonly rejectsPrefill?: true;
  /** The announced day of its end. */
  readonly retires?: string;
  readonly usd: PriceInUsd;
}

/** The models from Claude Opus 4.7 on. */
const ADAPTIVE = { context: 1_000_000, maxOutput: 128_000, adaptive: true, rejectsPrefill: true } as const;

const OFFERS: Readonly<Record<string, AnthropicOffer>> = {
  'claude-sonnet-4-6': {
    name: 'Claude Sonnet 4.6',
    snapshot: 'claude-sonnet-4-6',
    rejectsPrefill: true,
    context: 1_000_000,
    maxOutput: 128_000,
    usd: { input: '3', cachedInput: '0.3', output: '15', request: '0' },
  },
  'claude-haiku-4-5': {
    name: 'Claude Haiku 4.5',
    snapshot: 'claude-haiku-4-5-20251001',
    context: 200_000,
    maxOutput: 64_000,
    usd: { input: '1', cachedInput: '0.1', output: '5', request: '0' },
  },
  'claude-opus-4-6': {
    name: 'Claude Opus 4.6',
    snapshot: 'claude-opus-4-6',
    rejectsPrefill: true,
    context: 1_000_000,
    maxOutput: 128_000,
    usd: { input: '5', cachedInput: '0.5', output: '25', request: '0' },
  },
  'claude-opus-4-7': {
    name: 'Claude Opus 4.7',
    snapshot: 'claude-opus-4-7',
    ...ADAPTIVE,
    usd: { input: '5', cachedInput: '0.5', output: '25', request: '0' },
  },
  'claude-opus-5': {
    name: 'Claude Opus 5',
    snapshot: 'claude-opus-5',
    ...ADAPTIVE,
    thinkingOff: 'disabled',
    usd: { input: '5', cachedInput: '0.5', output: '25', request: '0' },
  },
  'claude-sonnet-5-5': {
    name: 'Claude Sonnet 5.5',
    snapshot: 'claude-sonnet-5-5',
    ...ADAPTIVE,
    thinkingOff: 'between_tools',
    rejectsForcedTools: true,
    thinkingReaders: ['claude-sonnet-5-5'],
    usd: { input: '2', cachedInput: '0.1', output: '10', request: '0' },
  },
  'claude-opus-5-5': {
    name: 'Claude Opus 5.5',
    snapshot: 'claude-opus-5-5',
    ...ADAPTIVE,
    thinkingOff: 'never',
    rejectsForcedTools: true,
    thinkingReaders: ['claude-opus-5-5', 'claude-fable-5-1', 'claude-fable-5-2'],
    usd: { input: '4', cachedInput: '0.2', output: '20', request: '0' },
  },
  'claude-fable-5-2': {
    name: 'Claude Fable 5.2',
    snapshot: 'claude-fable-5-2',
    ...ADAPTIVE,
    thinkingOff: 'never',
    rejectsForcedTools: true,
    thinkingReaders: ['claude-fable-5-2'],
    usd: { input: '8', cachedInput: '0.2', output: '40', request: '0' },
  },
  'claude-fable-5-1': {
    name: 'Claude Fable 5.1',
    snapshot: 'claude-fable-5-1',
    ...ADAPTIVE,
    thinkingOff: 'never',
    rejectsForcedTools: true,
    thinkingReaders: ['claude-fable-5-1', 'claude-fable-5-2'],
    usd: { input: '10', cachedInput: '0.25', output: '50', request: '0' },
  },
  'claude-haiku-5-5': {
    name: 'Claude Haiku 5.5',
    snapshot: 'claude-haiku-5-5',
    ...ADAPTIVE,
    thinkingOff: 'disabled',
    thinkingReaders: ['claude-haiku-5-5'],
    usd: { input: '0.1', cachedInput: '0.01', output: '0.5', request: '0' },
  },
  'claude-sonnet-5': {
    name: 'Claude Sonnet 5',
    snapshot: 'claude-sonnet-5',
    ...ADAPTIVE,
    thinkingOff: 'disabled',
    usd: { input: '2', cachedInput: '0.2', output: '10', request: '0' },
  },
  'claude-opus-4-8': {
    name: 'Claude Opus 4.8',
    snapshot: 'claude-opus-4-8',
    ...ADAPTIVE,
    usd: { input: '5', cachedInput: '0.5', output: '25', request: '0' },
  },
  'claude-sonnet-4-5': {
    name: 'Claude Sonnet 4.5',
    snapshot: 'claude-sonnet-4-5-20250929',
    retires: '2026-11-30',
    context: 200_000,
    maxOutput: 64_000,
    usd: { input: '3', cachedInput: '0.3', output: '15', request: '0' },
  },
  'claude-opus-4-5': {
    name: 'Claude Opus 4.5',
    snapshot: 'claude-opus-4-5-20251101',
    retires: '2027-01-22',
    context: 200_000,
    maxOutput: 64_000,
    usd: { input: '5', cachedInput: '0.5', output: '25', request: '0' },
  },
};

export interface AnthropicModel extends SandboxModel, Omit<AnthropicOffer, 'usd'> {}

const MODELS: ReadonlyMap<string, AnthropicModel> = createModels<AnthropicOffer>(OFFERS);
/** A dated snapshot is available under its own name as well. */
const BY_SNAPSHOT: ReadonlyMap<string, AnthropicModel> = new Map(
  [...MODELS.values()].map((model) => [model.snapshot, model]),
);

/** An arbitrary date: Anthropic's format requires one. */
const CREATED = '2025-10-01T00:00:00Z';

/** Returns the model with a name, which may be its snapshot; undefined if there is none. */
export function getModel(id: string): AnthropicModel | undefined {
  return MODELS.get(id) ?? BY_SNAPSHOT.get(id);
}

export function findModel(id: string): AnthropicModel {
  const model = getModel(id);
  if (model) return model;
  throw createError(404, 'not_found_error', `model: ${id}`);
}

export function modelRoutes(): Routes {
  // A model is listed by the name of its snapshot, and can be called by both.
  const toModelJson = ({ snapshot, name, context, maxOutput, retires }: AnthropicModel) => ({
    type: 'model',
    id: snapshot,
    display_name: name,
    created_at: CREATED,
    max_input_tokens: context,
    max_tokens: maxOutput,
    lifecycle: retires === undefined ? 'active' : 'deprecated',
    deprecated_at: retires === undefined ? null : CREATED,
    retires_at: retires === undefined ? null : `${retires}T00:00:00Z`,
    capabilities: null,
    line: null,
  });
  return {
    'GET /anthropic/v1/models': (call) => {
      assertHeaders(call);
      const all = [...MODELS.values()].map(toModelJson);
      const start = all.findIndex(({ id }) => id === call.query.get('after_id')) + 1;
      const data = all.slice(start, start + Number(call.query.get('limit') ?? 20));
      const has_more = start + data.length < all.length;
      call.sendJson(200, { data, has_more, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null });
    },
    'GET /anthropic/v1/models/:id': (call) => {
      assertHeaders(call);
      call.sendJson(200, toModelJson(findModel(call.parameter)));
    },
  };
}
