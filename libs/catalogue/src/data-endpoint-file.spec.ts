import { describe, expect, test } from '@jest/globals';
import { type DataEndpoint, dataPathOf, readCatalogue } from '#catalogue';
import { boundOf, costOf } from '#domain';
import { formatUsd } from '#kernel';

/** What the specification lists (4.10), by our names of the classes; where it names no price, there is none here. */
const LISTED = `
  POST maps text-search/full 0.08
  POST maps text-search/partial 0.02
  POST maps nearby-search/full 0.08
  POST maps nearby-search/partial 0.02
  GET maps place-details/full 0.05
  GET maps place-details/partial 0.02
  GET maps solar/building-insights
  GET maps solar/data-layers
  GET maps solar/rgb-image
  GET maps aerial-view/lookup-video
  POST maps aerial-view/render-video
  POST people people-search 0.02
  POST people org-search 0.02
  POST people people-enrich 0.0495
  POST people org-enrich 0.0495
  POST professionals people-search
  POST professionals company-search
  POST professionals people-enrich
  POST professionals org-enrich
  POST professionals properties-enrich
  POST identity resolve
  POST identity enrich
  POST identity validate-emails
  POST web search 0.01
  POST web find-similar 0.01
  POST web answer 0.01
  POST web contents 0.002
  POST crawler scrape 0.0126
  POST crawler search 0.0252
  POST contacts contacts-enrich 0.20
  POST contacts profile-scrape 0.04
  POST serp news 0.04
  POST serp shopping 0.04
  POST serp images
  POST serp people-image-search
  POST serp lens
  POST forum search 0.02
  POST forum post-comments 0.02
  POST records person-search 0.44
  POST records property-search 0.44
  POST email email-verifier 0.03
  POST influencers enrich-by-email 0.40
  POST influencers enrich-by-social 0.40
  GET x tweets/search 0.01
  GET x tweets/by/id 0.01
  GET x tweets/user 0.01
  GET x tweets/replies 0.01
  GET x tweets/quote_tweets 0.01
  GET x tweets/retweeted_by 0.01
  GET x users/search 0.01
  GET x users/by/id 0.01
  GET x users/by/username 0.01
  GET x users/followers 0.01
  GET x users/following 0.01
  GET x lists/by/id 0.01`;
const listed = LISTED.trim()
  .split(/\n\s*/)
  .map((row) => row.split(' ') as [method: string, provider: string, action: string, base?: string]);

const { dataEndpoints } = readCatalogue();
const named = (each: DataEndpoint) => `${each.provider}/${each.action}`;
/** The most that a lookup can cost and be sold for. */
const amounts = ({ endpoint, billed, caps }: DataEndpoint) => {
  const most = { lookup: 1, ...(billed ? { result: caps?.[billed.cap]?.max ?? Number.NaN } : {}) };
  return { cost: costOf(most, endpoint.tariff.prices), price: boundOf(most, endpoint.tariff.prices) };
};

describe('the lookups that ship', () => {
  test('are those of the specification, and no others', () => {
    const rows = dataEndpoints.map(({ method, provider, action }) => `${method} ${provider} ${action}`);
    expect(rows.sort()).toEqual(listed.map(([method, ...name]) => [method, ...name.slice(0, 2)].join(' ')).sort());
  });

  test.each(listed.filter(([, , , base]) => base !== undefined))('%s %s %s is sold by the base of %s', (...row) => {
    const [, provider, action, base] = row;
    const found = readCatalogue().dataEndpoint(provider, action) as DataEndpoint;
    expect(Number(formatUsd(amounts(found).price))).toBeCloseTo(Number(base) * 1.15, 9);
  });

  test('never cost more than they are sold for', () => {
    const dear = dataEndpoints.filter((each) => amounts(each).cost > amounts(each).price || amounts(each).price === 0n);
    expect(dear.map(named)).toEqual([]);
  });

  test('are found where the specification has them', () => {
    const paths = dataEndpoints.map(dataPathOf);
    expect(paths).toContain('/data/api/maps/text-search/full');
    expect(paths).toContain('/data/x/tweets/by/id');
  });
});
