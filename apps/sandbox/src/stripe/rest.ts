/**
 * Stripe's REST API, as far as its library asks it for what the product needs; a page on which one pays; and the switches
 * of the account. The library knows a host and no path before `/v1`, so these are the only routes there.
 */
import { createHash } from 'node:crypto';
import { reportIn } from '../report.ts';
import { type Call, parseObject, Refusal, type Routes } from '../router.ts';
import { FakeStripeAccount, type Options, type StripeObject } from './account.ts';
import { listIn, paramsIn, refusal, textIn } from './form.ts';
import { StripeWebhooks } from './webhooks.ts';

const PAGES = '/stripe/pay';
const DEFAULT_LIMIT = 10;
const MAX_LIMIT = 100;
/** Fields that are kept beside those of the API. */
const INNER = new Set(['settled_in', 'intent_metadata']);

interface Answered {
  readonly digest: string;
  readonly session: StripeObject;
}

export class StripeServer {
  private readonly account: FakeStripeAccount;
  private readonly hooks = new StripeWebhooks();
  /** Answers by `Idempotency-Key`. */
  private readonly answered = new Map<string, Answered>();

  constructor(now?: () => number) {
    this.account = new FakeStripeAccount(now);
  }

  routes(): Routes {
    return {
      'POST /v1/checkout/sessions': (call) => this.create(call),
      'GET /v1/checkout/sessions/:id': (call) => {
        const session = this.account.session(authorised(call).parameter);
        this.send(call, this.expanded(session, expandsIn(call)));
      },
      'GET /v1/checkout/sessions': (call) => this.list(call, 'checkout.session'),
      'GET /v1/refunds': (call) => this.list(call, 'refund'),
      'GET /v1/disputes': (call) => this.list(call, 'dispute'),
      'GET /v1/events': (call) => this.list(call, 'event'),
      [`GET ${PAGES}/:session`]: (call) => call.bytes(200, 'text/html; charset=utf-8', payPage(this.paid(call))),
      [`POST ${PAGES}/:session`]: (call) => {
        const { id, success_url } = this.paid(call);
        this.hooks.report(this.account.act(id, 'pay', {}), 'once');
        call.json(303, {}, { location: success_url });
      },
      'POST /stripe/sessions/:session': (call) => this.act(call),
      'POST /stripe/webhooks': async (call) => {
        const { url, secret } = parseObject(await call.text()) ?? {};
        if (typeof url !== 'string' || typeof secret !== 'string') throw unusable('"url" and "secret" must be there');
        this.hooks.add({ url, secret });
        call.json(200, {});
      },
    };
  }

  close(): void {
    this.hooks.close();
  }

  private async create(call: Call): Promise<void> {
    const { headers } = authorised(call).request;
    const body = await call.text();
    const key = String(headers['idempotency-key'] ?? '');
    const digest = createHash('sha256').update(body).digest('hex');
    const before = this.answered.get(key);
    if (before && before.digest !== digest) {
      const message = `Keys for idempotent requests can only be used with the same parameters they were first used with.`;
      throw refusal(400, { type: 'idempotency_error', message });
    }
    const session =
      before?.session ?? this.account.createSession(paramsIn(body), `http://${headers.host ?? ''}${PAGES}`);
    if (key !== '') this.answered.set(key, { digest, session });
    this.send(call, session, before ? { 'idempotent-replayed': 'true' } : {});
  }

  private list(call: Call, object: string): void {
    const params = paramsIn(authorised(call).query.toString());
    const limit = Math.min(Number(textIn(params, 'limit') ?? DEFAULT_LIMIT), MAX_LIMIT);
    const { payment_intent, starting_after, ending_before } = params;
    const types = new Set(listIn(params.types));
    const since = Number(textIn(params.created as never, 'gte') ?? 0);
    const all = this.account
      .all(object)
      .filter(
        (each) =>
          (payment_intent === undefined || each.payment_intent === payment_intent) &&
          (types.size === 0 || types.has(each.type)) &&
          each.created >= since,
      );
    const at = (id: unknown) => all.findIndex((each) => each.id === id);
    const before = ending_before === undefined ? all : all.slice(0, Math.max(0, at(ending_before)));
    const rest = before.slice(at(starting_after) + 1);
    const page = ending_before === undefined ? rest.slice(0, limit) : rest.slice(-limit);
    const expands = expandsIn(call).map((path) => path.replace(/^data\./, ''));
    const data = page.map((each) => this.expanded(each, expands));
    this.send(call, { object: 'list', data, has_more: rest.length > page.length, url: `/v1/${object}s` });
  }

  private async act(call: Call): Promise<void> {
    const {
      do: act,
      report,
      amount,
      total,
      settled_in,
      refund,
      fee_later,
      ...unknown
    } = parseObject(await call.text()) ?? {};
    for (const name in unknown) throw unusable(`there is no option "${name}"`);
    const how = report === 'at once' ? report : reportIn(report);
    const options = { amount, total, settledIn: settled_in, refund, feeLater: fee_later } as Options;
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    const events = this.account.act(call.parameter, String(act), given);
    this.hooks.report(events, how);
    call.json(200, { events });
  }

  /** A session that is open. */
  private paid(call: Call): StripeObject {
    const session = this.account.session(call.parameter);
    if (session.status !== 'open') throw unusable('this page is closed');
    return session;
  }

  /** With objects in the place of their ids, as far as the paths say. */
  private expanded(of: StripeObject, paths: readonly string[]): StripeObject {
    const shown = { ...of };
    for (const [field = '', below] of Map.groupBy(paths, (path) => path.split('.')[0])) {
      const inner = typeof shown[field] === 'string' ? this.account.find(shown[field]) : undefined;
      const rest = below.map((path) => path.slice(field.length + 1)).filter((path) => path !== '');
      if (inner) shown[field] = this.expanded(inner, rest);
      if (shown.object === 'charge' && field === 'refunds') shown.refunds = this.refundsOf(shown);
    }
    return shown;
  }

  private refundsOf({ id }: StripeObject): object {
    const data = this.account.all('refund').filter(({ charge }) => charge === id);
    return { object: 'list', data: data.slice(0, DEFAULT_LIMIT), has_more: data.length > DEFAULT_LIMIT };
  }

  private send(call: Call, body: object, headers = {}): void {
    const json = JSON.stringify(body, (name, value) => (INNER.has(name) ? undefined : value));
    call.send(200, json, { 'request-id': `req_${call.request.socket.remotePort}`, ...headers });
  }
}

/** A secret key or a restricted one. */
function authorised(call: Call): Call {
  if (/^Bearer (sk|rk)_\w+$/.test(call.request.headers.authorization ?? '')) return call;
  throw refusal(401, { type: 'invalid_request_error', message: 'Invalid API Key provided' });
}

function expandsIn(call: Call): readonly string[] {
  return listIn(paramsIn(call.query.toString()).expand).filter((each) => typeof each === 'string');
}

function payPage({ amount_total, currency, cancel_url }: StripeObject): Buffer {
  const amount = `${(amount_total / 100).toFixed(2)} ${String(currency).toUpperCase()}`;
  const cancel = String(cancel_url).replaceAll(/[&"<>]/g, (each) => `&#${each.charCodeAt(0)};`);
  return Buffer.from(
    `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Simulated card payment</title>` +
      `<h1>Simulated card payment</h1><p>${amount}. No card is needed, and no money moves.</p>` +
      `<form method="post"><button>Pay ${amount}</button></form><p><a href="${cancel}">Cancel</a></p></html>`,
  );
}

function unusable(error: string): Refusal {
  return new Refusal(400, { error });
}
