/** Posts, users and lists of X as twit.sh sells them, in the formats of X's API v2 (https://docs.x.com/x-api). */

import { STATUS_CODES } from 'node:http';
import { type JsonObject } from '#kernel';
import { HttpError } from '../router.ts';
import { generatePerson, generateProse, generateTime, type Seed } from './generated-data.ts';
import {
  type DataVendor,
  type DataVendorRequest,
  type DataVendorResult,
  findNumber,
  findText,
  generateResults,
  type Lookup,
} from './vendor.ts';

const DEFAULT_RESULTS = 10;
const MAX_RESULTS = 100;
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
  createError: (status, detail) => {
    const type = status === 400 ? 'https://api.x.com/2/problems/invalid-request' : 'about:blank';
    return new HttpError(status, { title: STATUS_CODES[status], detail, type, status });
  },
  createKeyError: () => twit.createError(401, 'Unauthorized'),
  lookups: {
    'GET /tweets/search': createListLookup(SEARCHES, createPost),
    'GET /tweets/by/id': createSingleLookup('id', (seed, id) => ({ ...createPost(seed), id })),
    'GET /tweets/user': createListLookup(['username', 'id'], createPost),
    'GET /tweets/replies': createListLookup(['id'], createPost),
    'GET /tweets/quote_tweets': createListLookup(['id'], createPost),
    'GET /tweets/retweeted_by': createListLookup(['id'], createUser),
    'GET /users/search': createListLookup(['query'], createUser),
    'GET /users/by/id': createSingleLookup('id', (seed, id) => ({ ...createUser(seed), id })),
    'GET /users/by/username': createSingleLookup('username', (seed, username) => ({ ...createUser(seed), username })),
    'GET /users/followers': createListLookup(['id', 'username'], createUser),
    'GET /users/following': createListLookup(['id', 'username'], createUser),
    'GET /lists/by/id': createSingleLookup('id', (seed, id) => ({
      id,
      name: generateProse(seed, 3),
      owner_id: seed.formatDigits(),
    })),
  },
};

function createListLookup(parameterNames: readonly string[], generate: (seed: Seed) => JsonObject): Lookup {
  const execute = (request: DataVendorRequest): DataVendorResult => {
    if (!parameterNames.some((name) => findText(request.fields, name)))
      throw twit.createError(400, `One of ${parameterNames.join(', ')} is required.`);
    const requestedCount = findNumber(request.fields, 'max_results') ?? DEFAULT_RESULTS;
    if (requestedCount < 1 || requestedCount > MAX_RESULTS)
      throw twit.createError(400, `max_results must be from 1 to ${MAX_RESULTS}`);
    const data = generateResults(request, request.count(requestedCount), generate);
    if (data.length === 0) return { body: { meta: { result_count: 0 } }, results: 0 };
    const meta = { result_count: data.length, next_token: request.seed.formatHex(16) };
    return { body: { data, meta }, results: data.length };
  };
  return { usd: USD, billsEmptyResults: true, execute };
}

/** A missing object is reported with status 200. */
function createSingleLookup(by: string, generate: (seed: Seed, id: string) => JsonObject): Lookup {
  const execute = (request: DataVendorRequest): DataVendorResult => {
    const id = findText(request.fields, by);
    if (!id) throw twit.createError(400, `${by} is required.`);
    if (request.count(1) > 0) return { body: { data: generate(request.seed, id) }, results: 1 };
    const error = {
      value: id,
      detail: `Could not find what has the ${by} [${id}].`,
      title: 'Not Found Error',
      type: 'https://api.x.com/2/problems/resource-not-found',
    };
    return { body: { errors: [error] }, results: 0 };
  };
  return { usd: USD, billsEmptyResults: true, execute };
}

function createPost(seed: Seed): JsonObject {
  const author = createUser(seed.branch('author'));
  const id = seed.formatDigits();
  return {
    id,
    text: generateProse(seed, 20),
    created_at: generateTime(seed),
    author_id: author.id,
    conversation_id: id,
    lang: 'en',
    public_metrics: {
      retweet_count: seed.getNumber(3) % 900,
      reply_count: seed.getNumber(4) % 90,
      like_count: seed.getNumber(5) % 9_000,
      quote_count: seed.getNumber(6) % 90,
    },
    edit_history_tweet_ids: [id],
    author,
  };
}

function createUser(seed: Seed): JsonObject {
  const { name, handle, place } = generatePerson(seed);
  return {
    id: seed.formatDigits(),
    name,
    username: handle.replace('-', '_'),
    description: generateProse(seed, 10),
    location: place.town,
    created_at: generateTime(seed),
    verified: false,
    public_metrics: { followers_count: seed.getNumber(3), following_count: seed.getNumber(4) % 900 },
  };
}
