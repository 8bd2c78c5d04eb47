/** Posts and comments of Reddit in ScrapeCreators' format: https://docs.scrapecreators.com */
import { HttpError } from '../router.ts';
import { generatePerson, generateProse, type Seed } from './generated-data.ts';
import { type DataVendor, findNumber, findText, generateResults } from './vendor.ts';

const DEFAULT_RESULTS = 25;
const MAX_RESULTS = 100;
const YEAR_2025 = 1_735_689_600;
const CREDITS = 10_000;

export const scrapeCreators: DataVendor = {
  name: 'scrape-creators',
  keys: [{ in: 'header', name: 'x-api-key' }],
  createError: (status, message) => new HttpError(status, { success: false, message }),
  lookups: {
    'GET /v1/reddit/search': {
      usd: '0.02',
      billsEmptyResults: true,
      execute: (request) => {
        if (!findText(request.fields, 'query')) throw scrapeCreators.createError(400, 'query is required');
        const requestedCount = Math.min(findNumber(request.fields, 'maxResults') ?? DEFAULT_RESULTS, MAX_RESULTS);
        const posts = generateResults(request, request.count(requestedCount), createPost);
        const body = { success: true, credits_remaining: CREDITS, posts, after: `t3_${request.seed.formatHex(7)}` };
        return { body, results: posts.length };
      },
    },
    'GET /v1/reddit/post/comments': {
      usd: '0.02',
      billsEmptyResults: true,
      execute: (request) => {
        const url = findText(request.fields, 'url');
        if (!url) throw scrapeCreators.createError(400, 'url is required');
        const first = { ...createPost(request.seed), url };
        const comments = generateResults(request, request.count(DEFAULT_RESULTS), (seed) =>
          createComment(seed, first.name),
        );
        const more = { has_more: false, cursor: null };
        const body = { success: true, credits_remaining: CREDITS, post: first, comments, more };
        return { body, results: comments.length };
      },
    },
  },
};

function createPost(seed: Seed) {
  const id = seed.formatHex(7);
  return {
    id,
    name: `t3_${id}`,
    title: generateProse(seed, 8),
    selftext: generateProse(seed, 30),
    author: generatePerson(seed).handle.replace('-', '_'),
    subreddit: 'abacus',
    score: seed.getNumber(3) % 5_000,
    num_comments: seed.getNumber(4) % 300,
    created_utc: YEAR_2025 + seed.getNumber(5) * 100,
    permalink: `/r/abacus/comments/${id}/`,
    url: `https://forum.example/r/abacus/comments/${id}/`,
  };
}

function createComment(seed: Seed, parent: string) {
  const id = seed.formatHex(7);
  return {
    id,
    name: `t1_${id}`,
    parent_id: parent,
    author: generatePerson(seed).handle.replace('-', '_'),
    body: generateProse(seed, 20),
    score: seed.getNumber(3) % 500,
    created_utc: YEAR_2025 + seed.getNumber(5) * 100,
    replies: { items: [], more: { has_more: false, cursor: null } },
  };
}
