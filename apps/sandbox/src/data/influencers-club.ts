/** Profiles of creators, as Influencers Club answers: https://docs.influencers.club. Nothing found costs nothing. */
import { Refusal } from '../router.ts';
import { personOf, proseOf, type Seed } from './invented.ts';
import { type DataVendor, type DataVendorRequest, type DataVendorResult, textIn } from './vendor.ts';

const PLATFORMS = ['instagram', 'youtube', 'tiktok', 'twitter', 'twitch', 'onlyfans', 'linkedin'];

export const influencersClub: DataVendor = {
  name: 'influencers-club',
  keys: [{ in: 'header', name: 'authorization', prefix: 'Bearer ' }],
  refusal: (status, detail) => new Refusal(status, { detail }),
  wrongKey: (missing) =>
    influencersClub.refusal(
      401,
      missing ? 'Authentication credentials were not provided.' : 'Given token not valid for any token type',
    ),
  lookups: {
    'POST /creators/enrich/email/': {
      usd: '0.40',
      answer: (asked) => {
        if (!textIn(asked.fields, 'email')) throw new Refusal(400, { email: ['This field is required.'] });
        return found(asked, 'instagram');
      },
    },
    'POST /creators/enrich/handle/full/': {
      usd: '0.40',
      answer: (asked) => {
        const { platform } = asked.fields;
        if (!textIn(asked.fields, 'handle')) throw new Refusal(400, { handle: ['This field is required.'] });
        if (!PLATFORMS.includes(String(platform)))
          throw new Refusal(400, { platform: [`"${platform}" is not a valid choice.`] });
        return found(asked, String(platform));
      },
    },
  },
};

function found(asked: DataVendorRequest, platform: string): DataVendorResult {
  if (asked.count(1) === 0) return { body: { credits_cost: 0, result: {} }, results: 0 };
  const { name, first, email, place } = personOf(asked.seed);
  const result = {
    full_name: name,
    first_name: first,
    email,
    location: place.town,
    speaking_language: 'en',
    has_link_in_bio: true,
    [platform]: account(asked.seed),
  };
  return { body: { credits_cost: 1, result }, results: 1 };
}

function account(seed: Seed) {
  return {
    userid: seed.digits(),
    username: personOf(seed).handle.replace('-', '_'),
    follower_count: 1_000 + seed.number(3),
    engagement_percent: (seed.number(4) % 100) / 10,
    biography: proseOf(seed, 10),
    is_verified: false,
  };
}
