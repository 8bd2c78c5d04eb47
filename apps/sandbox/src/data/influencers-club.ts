/**
 * Profiles of creators in Influencers Club's format: https://docs.influencers.club. A call without a result is free.
 */
import { HttpError } from '../router.ts';
import { generatePerson, generateProse, type Seed } from './generated-data.ts';
import { type DataVendor, type DataVendorRequest, type DataVendorResult, findText } from './vendor.ts';

const PLATFORMS = ['instagram', 'youtube', 'tiktok', 'twitter', 'twitch', 'onlyfans', 'linkedin'];

export const influencersClub: DataVendor = {
  name: 'influencers-club',
  keys: [{ in: 'header', name: 'authorization', prefix: 'Bearer ' }],
  createError: (status, detail) => new HttpError(status, { detail }),
  createKeyError: (missing) =>
    influencersClub.createError(
      401,
      missing ? 'Authentication credentials were not provided.' : 'Given token not valid for any token type',
    ),
  lookups: {
    'POST /creators/enrich/email/': {
      usd: '0.40',
      execute: (request) => {
        if (!findText(request.fields, 'email')) throw new HttpError(400, { email: ['This field is required.'] });
        return createProfileResult(request, 'instagram');
      },
    },
    'POST /creators/enrich/handle/full/': {
      usd: '0.40',
      execute: (request) => {
        const { platform } = request.fields;
        if (!findText(request.fields, 'handle')) throw new HttpError(400, { handle: ['This field is required.'] });
        if (!PLATFORMS.includes(String(platform)))
          throw new HttpError(400, { platform: [`"${platform}" is not a valid choice.`] });
        return createProfileResult(request, String(platform));
      },
    },
  },
};

function createProfileResult(request: DataVendorRequest, platform: string): DataVendorResult {
  if (request.count(1) === 0) return { body: { credits_cost: 0, result: {} }, results: 0 };
  const { name, first, email, place } = generatePerson(request.seed);
  const result = {
    full_name: name,
    first_name: first,
    email,
    location: place.town,
    speaking_language: 'en',
    has_link_in_bio: true,
    [platform]: createAccount(request.seed),
  };
  return { body: { credits_cost: 1, result }, results: 1 };
}

function createAccount(seed: Seed) {
  return {
    userid: seed.formatDigits(),
    username: generatePerson(seed).handle.replace('-', '_'),
    follower_count: 1_000 + seed.getNumber(3),
    engagement_percent: (seed.getNumber(4) % 100) / 10,
    biography: generateProse(seed, 10),
    is_verified: false,
  };
}
