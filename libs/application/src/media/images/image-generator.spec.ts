import { describe, expect, test } from '@jest/globals';
import type { Endpoint, MediaModel } from '#catalogue';
import type { Price, Tariff } from '#domain';
import { parseUsd, ZERO_USD } from '#kernel';
import { createTestRuntime } from '../../../../testing/src/test-runtime.ts';
import type { Order } from '../../billing/order.ts';
import type { Payer } from '../../billing/payer.ts';
import { Purchase } from '../../billing/purchase.ts';
import { Clock } from '../../clock.ts';
import { UpstreamError } from '../../errors.ts';
import type { GeneratedImages, ImageCall } from '../../providers/media-calls.ts';
import type { ProviderRegistry } from '../../providers/provider.ts';
import { EndpointHealth } from '../../routing/endpoint-health.ts';
import type { ImageFiles } from './image-files.ts';
import { ImageGenerator } from './image-generator.ts';

class StillClock extends Clock {
  nowMs(): number {
    return 0;
  }
}

const each = (line: Omit<Price, 'per'>): Price => ({ per: 1n, ...line });
const BY_IMAGE = [each({ unit: 'image', cost: 100n, price: 115n })];
const BY_TOKENS = [
  each({ unit: 'image', price: 230n, when: { quality: 'high' } }),
  each({ unit: 'image', price: 115n }),
  each({ unit: 'input', cost: 1n }),
  each({ unit: 'imageOutput', cost: 10n }),
];
const GOOD = Buffer.from('good');
const BAD = Buffer.from('bad');
const TAKES = { parameters: ['prompt', 'quality'], wire: {} };

type Answer = Partial<GeneratedImages> | UpstreamError;

/** Generates `count` images with a provider that sends these responses or errors in the order of the calls. */
async function made(count: number, prices: readonly Price[], answers: Answer[], perCall = 1) {
  const tariff: Tariff = { of: 'v/m', provider: 'maker', creditor: 'maker', prices };
  const endpoint = { ...TAKES, slug: 'maker', upstream: 'maker', model: 'm', imagesPerCall: perCall, tariff };
  const model = { id: 'v/m', endpoints: [endpoint] } as unknown as MediaModel;
  const query = { model: 'v/m', type: 'image_generation', source: 'api', online: false, free: false } as const;
  const bounds = { priceList: { version: 'list', lines: [] }, minPrice: parseUsd('1'), maxPrice: parseUsd('1') };
  const sale: Order = { id: 'h', query, model, endpoints: [endpoint as unknown as Endpoint], ...bounds };
  const hold = {
    holdId: 'h',
    payer: 'account-a',
    amount: parseUsd('1'),
    availableAfter: ZERO_USD,
    expiresAt: 0,
  };
  const watch = { health: new EndpointHealth(new StillClock()), runtime: createTestRuntime() };
  const deadline = { signal: new AbortController().signal, abort: () => {} };
  const purchase = new Purchase(sale, { payer: {} as Payer, hold }, deadline, watch);
  const asked: ImageCall[] = [];
  const images = async (call: ImageCall): Promise<GeneratedImages> => {
    asked.push(call);
    const answer = answers[asked.length - 1] as Answer;
    if (answer instanceof Error) throw answer;
    const files = Array(call.count).fill({ kind: 'bytes', bytes: GOOD });
    return { files, usage: undefined, vendorId: `v${asked.length}`, ...answer };
  };
  const files = {
    fetchGenerated: async (_: string, { bytes }: { bytes: Buffer }) =>
      bytes === GOOD ? { mediaType: 'image/png', bytes } : undefined,
  };
  const maker = new ImageGenerator(
    { get: () => images } as unknown as ProviderRegistry,
    files as unknown as ImageFiles,
  );
  const choices = { quality: 'low' };
  const order = {
    resolved: { model, sort: undefined, online: false, forwardedSuffix: '' },
    params: { count, prompt: 'A coin', choices, parameters: choices },
    inputs: async () => ({}),
  };
  const outcome = await maker.generate(order, purchase).catch((failure: UpstreamError) => failure);
  const { items = [], cost = '0', price = '0' } = purchase.createCharge() ?? {};
  const delivered = outcome instanceof Error ? outcome.code : outcome.images.length;
  return { delivered, cost, price, items, calls: asked.map((call) => call.count), cutBy: purchase.endedBy?.code };
}

const refused = new UpstreamError('invalid_request', 'no', { status: 400 });
const lost = new UpstreamError('upstream_unavailable', 'gone', { deliveredText: '' });

describe('images', () => {
  test('are generated with as many calls as needed', async () => {
    expect(await made(4, BY_IMAGE, [{}, {}], 3)).toMatchObject({
      delivered: 4,
      cost: '400',
      price: '460',
      calls: [3, 1],
    });
  });

  test('are delivered and charged if their call succeeded, although other calls failed', async () => {
    expect(await made(3, BY_IMAGE, [{}, refused, {}])).toMatchObject({
      delivered: 2,
      cost: '200',
      price: '230',
      cutBy: 'invalid_request',
    });
  });

  test('cost only the operator if their response was lost, even if other images were delivered', async () => {
    const { items, ...rest } = await made(2, BY_IMAGE, [{}, lost]);
    expect(rest).toMatchObject({ delivered: 1, cost: '200', price: '115', calls: [1, 1] });
    const unavailable = { absorbed: 'upstream_unavailable', estimated: true, usage: { image: 1 }, price: '0' };
    expect(items).toContainEqual(expect.objectContaining(unavailable));
  });

  test('cost only the operator if they cannot be fetched or were not requested', async () => {
    const files = [GOOD, BAD, GOOD, GOOD].map((bytes) => ({ kind: 'bytes' as const, bytes }));
    expect(await made(3, BY_IMAGE, [{ files, usage: { image: 4 } }], 3)).toMatchObject({
      delivered: 2,
      cost: '400',
      price: '230',
    });
    const none = await made(1, BY_IMAGE, [{ files: [{ kind: 'bytes', bytes: BAD }] }]);
    expect(none).toMatchObject({ delivered: 'upstream_error', cost: '100', price: '0' });
  });

  test('have the cost of their tokens and a price per image if the provider bills by tokens', async () => {
    const usage = { input: 5, imageOutput: 7 };
    expect(await made(2, BY_TOKENS, [{ usage }, { usage }])).toMatchObject({ cost: '150', price: '230' });
    const unread = await made(1, BY_TOKENS, [{ usage, files: [{ kind: 'bytes', bytes: BAD }] }]);
    expect(unread).toMatchObject({ delivered: 'upstream_error', cost: '75', price: '0' });
  });

  test('are estimated to cost nearly what they are sold for if the provider reports no tokens', async () => {
    const { items, cost, price } = await made(1, BY_TOKENS, [{}]);
    expect([cost, price]).toEqual(['110', '115']);
    expect(items).toEqual([expect.objectContaining({ estimated: true, usage: { image: 1, imageOutput: 11 } })]);
  });

  test('cost the operator the reported usage if the provider rejects the prompt', async () => {
    const policy = new UpstreamError('content_policy_violation', 'no', { usage: { input: 9 } });
    const outcome = await made(1, BY_TOKENS, [policy]);
    expect(outcome).toMatchObject({ delivered: 'content_policy_violation', cost: '9', price: '0', calls: [1] });
    expect(outcome.items).toEqual([
      expect.objectContaining({ absorbed: 'content_policy_violation', estimated: false }),
    ]);
  });
});
