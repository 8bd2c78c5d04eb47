import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { verify } from '#audit';
import { isMediaModel, type MediaChoices, type MediaModel, readCatalogue } from '#catalogue';
import { formatTotalCost, isExplained, listCharges, PIXEL, sampleCases, type TestAccount, TestWorld } from '#testing';

const PRICED = ['duration', 'quality'] as const;

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.openWithSagas({ VIDEO_LOOKS_PER_SECOND: '1000' });
  account = await world.createAccount(315);
});
afterAll(() => world.close());

const models = (readCatalogue().models.filter(isMediaModel) as readonly MediaModel[]).filter(
  ({ type }) => type === 'video',
);

interface Order {
  readonly model: MediaModel;
  readonly vendor: string;
  readonly choices: MediaChoices;
}

/**
 * All combinations of duration and quality for every model and endpoint. For an endpoint that does not support
 * `quality`, only the first quality of the model is used. The aspect ratios alternate.
 */
const allOrders: readonly Order[] = models.flatMap((model) => {
  const { choices = {}, endpoints } = model;
  const ways = PRICED.reduce<readonly MediaChoices[]>(
    (all, choice) => all.flatMap((each) => (choices[choice] ?? ['']).map((word) => ({ ...each, [choice]: word }))),
    [{}],
  );
  return endpoints.flatMap(({ slug: vendor, parameters }) =>
    ways
      .filter(({ quality }) => parameters.includes('quality') || quality === (choices.quality?.[0] ?? ''))
      .map((way, i): Order => {
        const size = choices.size?.[i % choices.size.length];
        return { model, vendor, choices: size === undefined ? way : { ...way, size } };
      }),
  );
});
const orders = sampleCases(allOrders, 24);

interface Listed {
  readonly id: string;
  readonly pricing: {
    readonly unit: string;
    readonly base_price: number;
    readonly variants?: readonly Readonly<Record<string, unknown>>[];
  };
}

/** Returns the price that a client reads from the list: that of the first variant that matches, else the base price. */
function listedPrice({ pricing }: Listed, chosen: MediaChoices): number {
  const fits = ({ price, ...when }: Readonly<Record<string, unknown>>) =>
    Object.entries(when).every(([choice, word]) => chosen[choice as keyof MediaChoices] === word);
  const each = Number(pricing.variants?.find(fits)?.price ?? pricing.base_price);
  return Number((pricing.unit === 'clip' ? each : each * Number(chosen.duration)).toFixed(12));
}

test('estimates and charges the listed price of a video, and records the cost that the provider bills', async () => {
  const { body: list } = await world.get('/v1/models?type=video');
  const asked = await Promise.all(
    orders.map(async ({ model, vendor, choices: { size, ...choices } }) => {
      const image = model.capabilities.includes('requires_image')
        ? { image_url: `data:image/png;base64,${PIXEL.toString('base64')}` }
        : {};
      const body = { model: model.id, prompt: 'A harbour', ...choices, aspect_ratio: size, ...image };
      return world.post('/v1/videos', { ...body, provider: { only: [vendor] } }, account);
    }),
  );
  const prices = orders.map(({ model, choices }) =>
    listedPrice(list.data.find(({ id }: Listed) => id === model.id) as Listed, choices),
  );
  expect(asked.map(({ body }) => body.estimated_cost ?? body)).toEqual(prices);
  const answers = await Promise.all(
    asked.map(async ({ body: { id } }) => {
      let answer = await world.get(`/v1/videos/${id}`, account);
      await world.waitUntil(async () => {
        answer = await world.get(`/v1/videos/${id}`, account);
        return answer.status === 200;
      });
      return answer.body;
    }),
  );
  expect(answers.map(({ status, cost, error }) => [status, cost, error])).toEqual(
    prices.map((price) => ['completed', price, undefined]),
  );
  const charges = listCharges(await world.listEvents(account));
  expect(charges).toHaveLength(orders.length);
  for (const charge of charges) expect(isExplained(charge, readCatalogue().priceList.lines)).toBe(true);
  expect((await world.bill.fetchTotal()).total_usd).toBe(formatTotalCost(charges));
  const vendors = new Set(orders.map(({ vendor }) => vendor));
  expect(vendors).toEqual(new Set(['fal', 'google']));

  const lines: string[] = [];
  await verify(world.foundation, (line) => lines.push(line));
  expect(lines.at(-1)).toBe('drift 0');
});
