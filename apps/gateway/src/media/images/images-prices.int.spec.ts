import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { isMediaModel, type MediaChoices, type MediaModel, readCatalogue } from '#catalogue';
import { formatTotalCost, isExplained, listCharges, PIXEL, sampleCases, type TestAccount, TestWorld } from '#testing';

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(105);
});
afterAll(() => world.close());

const IMAGE = `data:image/png;base64,${PIXEL.toString('base64')}`;
const models = (readCatalogue().models.filter(isMediaModel) as readonly MediaModel[]).filter(
  ({ type }) => type === 'image',
);
const offers = models.flatMap((model) => model.endpoints.map(({ slug }) => [model.id, slug, model] as const));

/** Returns all combinations of the options of a model. */
function combinations({ choices = {} }: MediaModel): readonly MediaChoices[] {
  return Object.entries(choices).reduce<readonly MediaChoices[]>(
    (all, [choice, words]) => all.flatMap((each) => words.map((word) => ({ ...each, [choice]: word }))),
    [{}],
  );
}

interface Listed {
  readonly id: string;
  readonly pricing: { readonly base_price: number; readonly variants?: readonly Readonly<Record<string, unknown>>[] };
}

/** Returns the price that a client reads from the list: that of the first variant that matches, else the base price. */
function listedPrice({ pricing }: Listed, chosen: MediaChoices): number {
  const fits = ({ price, ...when }: Readonly<Record<string, unknown>>) =>
    Object.entries(when).every(([choice, word]) => chosen[choice as keyof MediaChoices] === word);
  return Number(pricing.variants?.find(fits)?.price ?? pricing.base_price);
}

describe('the listed price of an image', () => {
  test.each(offers)('is charged for %s at %s, and the billed cost is recorded', async (id, slug, model) => {
    const { body: list } = await world.get('/v1/models?type=image');
    const listed = list.data.find((each: Listed) => each.id === id) as Listed;
    const before = (await world.listEvents(account)).length;
    await world.bill.clear();
    const images = Math.min(model.maxImages ?? 1, 2);
    const chosen = sampleCases(combinations(model), 2);
    for (const choices of chosen) {
      const asked = { model: id, prompt: 'A coin', n: images, provider: { only: [slug] }, ...choices };
      const image = model.capabilities.includes('requires_image') ? { image_url: IMAGE } : {};
      const { status, body, text } = await world.post('/v1/images/generations', { ...asked, ...image }, account);
      expect([choices, status, status === 200 ? '' : text]).toEqual([choices, 200, '']);
      expect([choices, body.cost]).toEqual([choices, Number((listedPrice(listed, choices) * images).toFixed(12))]);
      expect(body.data).toHaveLength(images);
    }
    const charges = listCharges((await world.listEvents(account)).slice(before));
    expect(charges).toHaveLength(chosen.length);
    for (const charge of charges) expect(isExplained(charge, readCatalogue().priceList.lines)).toBe(true);
    expect((await world.bill.fetchTotal()).total_usd).toBe(formatTotalCost(charges));
  });
});
