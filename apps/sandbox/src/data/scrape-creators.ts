/** Posts of Reddit and what was answered to them, as ScrapeCreators answers: https://docs.scrapecreators.com */
import { Refusal } from '../router.ts';
import { personOf, proseOf, type Seed } from './invented.ts';
import { type DataVendor, each, numberIn, textIn } from './vendor.ts';

const USUALLY_FOUND = 25;
const MOST = 100;
const YEAR_2025 = 1_735_689_600;
const CREDITS = 10_000;

export const scrapeCreators: DataVendor = {
  name: 'scrape-creators',
  keys: [{ in: 'header', name: 'x-api-key' }],
  refusal: (status, message) => new Refusal(status, { success: false, message }),
  lookups: {
    'GET /v1/reddit/search': {
      usd: '0.02',
      billsNothingFound: true,
      answer: (asked) => {
        if (!textIn(asked.fields, 'query')) throw scrapeCreators.refusal(400, 'query is required');
        const wanted = Math.min(numberIn(asked.fields, 'maxResults') ?? USUALLY_FOUND, MOST);
        const posts = each(asked, asked.count(wanted), post);
        const body = { success: true, credits_remaining: CREDITS, posts, after: `t3_${asked.seed.hex(7)}` };
        return { body, results: posts.length };
      },
    },
    'GET /v1/reddit/post/comments': {
      usd: '0.02',
      billsNothingFound: true,
      answer: (asked) => {
        const url = textIn(asked.fields, 'url');
        if (!url) throw scrapeCreators.refusal(400, 'url is required');
        const first = { ...post(asked.seed), url };
        const comments = each(asked, asked.count(USUALLY_FOUND), (seed) => comment(seed, first.name));
        const more = { has_more: false, cursor: null };
        const body = { success: true, credits_remaining: CREDITS, post: first, comments, more };
        return { body, results: comments.length };
      },
    },
  },
};

function post(seed: Seed) {
  const id = seed.hex(7);
  return {
    id,
    name: `t3_${id}`,
    title: proseOf(seed, 8),
    selftext: proseOf(seed, 30),
    author: personOf(seed).handle.replace('-', '_'),
    subreddit: 'abacus',
    score: seed.number(3) % 5_000,
    num_comments: seed.number(4) % 300,
    created_utc: YEAR_2025 + seed.number(5) * 100,
    permalink: `/r/abacus/comments/${id}/`,
    url: `https://forum.example/r/abacus/comments/${id}/`,
  };
}

function comment(seed: Seed, parent: string) {
  const id = seed.hex(7);
  return {
    id,
    name: `t1_${id}`,
    parent_id: parent,
    author: personOf(seed).handle.replace('-', '_'),
    body: proseOf(seed, 20),
    score: seed.number(3) % 500,
    created_utc: YEAR_2025 + seed.number(5) * 100,
    replies: { items: [], more: { has_more: false, cursor: null } },
  };
}
