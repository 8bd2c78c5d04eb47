/** A web to search, as Exa answers: pages that are made up from the question, always the same ones. */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { usd } from '#kernel';
import type { Bill } from './bill.ts';
import { NO_TOKENS } from './bill.ts';
import { readDirective } from './provider/directive.ts';
import { FaultCounter, failedOutright } from './provider/faults.ts';
import { type Call, parseObject, Refusal, type Routes } from './router.ts';

/** Exa's price of a search with up to ten results that come with text. */
const PRICE = { id: 'exa/search', price: { input: 0n, cachedInput: 0n, output: 0n, request: usd('0.005') as bigint } };
const MOST_RESULTS = 100;
const DEFAULT_RESULTS = 10;
const WORDS = 'ledger entry balance audit invoice payment total account debit credit'.split(' ');

export function exaRoutes(bill: Bill): Routes {
  const faults = new FaultCounter();
  return {
    'POST /exa/search': async (call) => {
      assertKey(call);
      const body = parseObject(await call.text());
      if (typeof body?.query !== 'string' || body.query === '') throw refused(400, 'query must be a text');
      const count = Math.min(Number(body.numResults ?? DEFAULT_RESULTS), MOST_RESULTS);
      // Its faults must name it, or they would hit the search before the model they are meant for.
      const directive = readDirective(body.query);
      const directed = directive.at === 'exa';
      if (directed && directive.latency > 0) await delay(directive.latency, undefined, { ref: false });
      const fault = directed ? faults.next(directive, 'exa') : undefined;
      if (
        failedOutright(fault, call, (status) => refused(status === '429' ? 429 : 500, 'As the sandbox was directed.'))
      )
        return;
      if (fault === 'malformed') return call.json(200, { results: 'none' });
      const id = createHash('sha256').update(body.query).digest('hex').slice(0, 32);
      bill.charge(id, PRICE, NO_TOKENS, fault);
      const results = Array.from({ length: count }, (_, i) => page(id, i, body));
      call.json(200, { requestId: id, resolvedSearchType: 'neural', results, costDollars: { total: 0.005 } });
    },
  };
}

function page(id: string, i: number, body: Readonly<Record<string, unknown>>) {
  const [domain = `site${i + 1}.example`] = (body.includeDomains ?? []) as readonly string[];
  const url = `https://${domain}/${id.slice(0, 8)}/${i + 1}`;
  const words = Array.from(
    { length: 40 },
    (_, at) => WORDS[(Number.parseInt(id[at % 32] as string, 16) + at + i) % 10],
  );
  const { contents } = body as { contents?: { text?: { maxCharacters?: number } } };
  const text = words.join(' ').slice(0, contents?.text?.maxCharacters);
  return {
    id: url,
    url,
    title: `Page ${i + 1}`,
    score: 1 / (i + 1),
    publishedDate: '2026-01-01T00:00:00.000Z',
    author: null,
    text,
  };
}

function assertKey({ request }: Call): void {
  if (request.headers['x-api-key'] || request.headers.authorization) return;
  throw refused(401, 'Invalid API key');
}

function refused(status: number, error: string): Refusal {
  return new Refusal(status, { requestId: 'none', error });
}
