/** Posts and users of X, in the shapes of its API v2 (https://docs.x.com/x-api), as twit.sh sells them. */
import { STATUS_CODES } from 'node:http';
import { Refusal } from '../router.ts';
import { personOf, proseOf, type Seed, timeOf } from './invented.ts';
import {
  type DataVendor,
  type DataVendorRequest,
  type DataVendorResult,
  each,
  type JsonObject,
  type Lookup,
  numberIn,
  textIn,
} from './vendor.ts';

const DEFAULT_RESULTS = 10;
const MOST = 100;
const USD = '0.01';
const SEARCHES = [
  'words',
  'phrase',
  'anyWords',
  'noneWords',
  'hashtags',
  'from',
  'to',
  'mentioning',
  'minReplies',
  'minLikes',
  'minReposts',
  'since',
  'until',
];

export const twit: DataVendor = {
  name: 'twit',
  keys: [{ in: 'header', name: 'authorization', prefix: 'Bearer ' }],
  refusal: (status, detail) => {
    const type = status === 400 ? 'https://api.x.com/2/problems/invalid-request' : 'about:blank';
    return new Refusal(status, { title: STATUS_CODES[status], detail, type, status });
  },
  wrongKey: () => twit.refusal(401, 'Unauthorized'),
  lookups: {
    'GET /tweets/search': list(SEARCHES, post),
    'GET /tweets/by/id': single('id', (seed, id) => ({ ...post(seed), id })),
    'GET /tweets/user': list(['username', 'id'], post),
    'GET /tweets/replies': list(['id'], post),
    'GET /tweets/quote_tweets': list(['id'], post),
    'GET /tweets/retweeted_by': list(['id'], user),
    'GET /users/search': list(['query'], user),
    'GET /users/by/id': single('id', (seed, id) => ({ ...user(seed), id })),
    'GET /users/by/username': single('username', (seed, username) => ({ ...user(seed), username })),
    'GET /users/followers': list(['id', 'username'], user),
    'GET /users/following': list(['id', 'username'], user),
    'GET /lists/by/id': single('id', (seed, id) => ({ id, name: proseOf(seed, 3), owner_id: seed.digits() })),
  },
};

function list(about: readonly string[], make: (seed: Seed) => JsonObject): Lookup {
  const answer = (asked: DataVendorRequest): DataVendorResult => {
    if (!about.some((name) => textIn(asked.fields, name)))
      throw twit.refusal(400, `One of ${about.join(', ')} is required.`);
    const wanted = numberIn(asked.fields, 'max_results') ?? DEFAULT_RESULTS;
    if (wanted < 1 || wanted > MOST) throw twit.refusal(400, `max_results must be from 1 to ${MOST}`);
    const data = each(asked, asked.count(wanted), make);
    if (data.length === 0) return { body: { meta: { result_count: 0 } }, results: 0 };
    const meta = { result_count: data.length, next_token: asked.seed.hex(16) };
    return { body: { data, meta }, results: data.length };
  };
  return { usd: USD, billsNothingFound: true, answer };
}

/** What is not there is told with 200. */
function single(by: string, make: (seed: Seed, id: string) => JsonObject): Lookup {
  const answer = (asked: DataVendorRequest): DataVendorResult => {
    const id = textIn(asked.fields, by);
    if (!id) throw twit.refusal(400, `${by} is required.`);
    if (asked.count(1) > 0) return { body: { data: make(asked.seed, id) }, results: 1 };
    const error = {
      value: id,
      detail: `Could not find what has the ${by} [${id}].`,
      title: 'Not Found Error',
      type: 'https://api.x.com/2/problems/resource-not-found',
    };
    return { body: { errors: [error] }, results: 0 };
  };
  return { usd: USD, billsNothingFound: true, answer };
}

function post(seed: Seed): JsonObject {
  const author = user(seed.branch('author'));
  const id = seed.digits();
  return {
    id,
    text: proseOf(seed, 20),
    created_at: timeOf(seed),
    author_id: author.id,
    conversation_id: id,
    lang: 'en',
    public_metrics: {
      retweet_count: seed.number(3) % 900,
      reply_count: seed.number(4) % 90,
      like_count: seed.number(5) % 9_000,
      quote_count: seed.number(6) % 90,
    },
    edit_history_tweet_ids: [id],
    author,
  };
}

function user(seed: Seed): JsonObject {
  const { name, handle, place } = personOf(seed);
  return {
    id: seed.digits(),
    name,
    username: handle.replace('-', '_'),
    description: proseOf(seed, 10),
    location: place.town,
    created_at: timeOf(seed),
    verified: false,
    public_metrics: { followers_count: seed.number(3), following_count: seed.number(4) % 900 },
  };
}
