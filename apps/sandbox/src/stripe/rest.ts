/**
 * The part of Stripe's REST API that Countinghouse uses, a payment page, and actions on the account. Stripe's library
 * can be configured with another host but not with a path, so the routes of the API start with `/v1`.
 */
import { createHash } from 'node:crypto';
import { parseReportMode } from '../report.ts';
import { type Call, HttpError, parseObject, type Routes } from '../router.ts';
import { type ActionOptions, FakeStripeAccount, type StripeObject } from './account.ts';
import { createError, findText, parseParams, toList } from './form.ts';
import { StripeWebhooks } from './webhooks.ts';

const PAGES = '/stripe/pay';
const DEFAULT_LIMIT = 10;
const MAX_LIMIT = 100;
/** Stored fields that are not part of the API. */
const INTERNAL_FIELDS = new Set(['settled_in', 'intent_metadata']);

interface IdempotentSession {
  readonly digest: string;
  readonly session: StripeObject;
}

export class StripeServer {
  private readonly account: FakeStripeAccount;
  private readonly webhooks = new StripeWebhooks();
  /** Sessions by `Idempotency-Key`. */
  private readonly sessionsByKey = new Map<string, IdempotentSession>();

  constructor(now?: () => number) {
    this.account = new FakeStripeAccount(now);
  }

  routes(): Routes {
    return {
      'POST /v1/checkout/sessions': (call) => this.createSession(call),
      'GET /v1/checkout/sessions/:id': (call) => {
        const session = this.account.getSession(authorize(call).parameter);
        this.send(call, this.expandFields(session, parseExpandPaths(call)));
      },
      'GET /v1/checkout/sessions': (call) => this.list(call, 'checkout.session'),
      'GET /v1/refunds': (call) => this.list(call, 'refund'),
      'GET /v1/disputes': (call) => this.list(call, 'dispute'),
      'GET /v1/events': (call) => this.list(call, 'event'),
      [`GET ${PAGES}/:session`]: (call) =>
        call.sendBytes(200, 'text/html; charset=utf-8', renderPayPage(this.getOpenSession(call))),
      [`POST ${PAGES}/:session`]: (call) => {
        const { id, success_url } = this.getOpenSession(call);
        this.webhooks.report(this.account.performAction(id, 'pay', {}), 'once');
        call.sendJson(303, {}, { location: success_url });
      },
      'POST /stripe/sessions/:session': (call) => this.performAction(call),
      'POST /stripe/webhooks': async (call) => {
        const { url, secret } = parseObject(await call.readText()) ?? {};
        if (typeof url !== 'string' || typeof secret !== 'string')
          throw badRequestError('"url" and "secret" are required');
        this.webhooks.add({ url, secret });
        call.sendJson(200, {});
      },
    };
  }

  close(): void {
    this.webhooks.close();
  }

  private async createSession(call: Call): Promise<void> {
    const { headers } = authorize(call).request;
    const body = await call.readText();
    const key = String(headers['idempotency-key'] ?? '');
    const digest = createHash('sha256').update(body).digest('hex');
    const before = this.sessionsByKey.get(key);
    if (before && before.digest !== digest) {
      const message = `Keys for idempotent requests can only be used with the same parameters they were first used with.`;
      throw createError(400, { type: 'idempotency_error', message });
    }
    const session =
      before?.session ?? this.account.createSession(parseParams(body), `http://${headers.host ?? ''}${PAGES}`);
    if (key !== '') this.sessionsByKey.set(key, { digest, session });
    this.send(call, session, before ? { 'idempotent-replayed': 'true' } : {});
  }

  private list(call: Call, object: string): void {
    const params = parseParams(authorize(call).query.toString());
    const limit = Math.min(Number(findText(params, 'limit') ?? DEFAULT_LIMIT), MAX_LIMIT);
    const { payment_intent, starting_after, ending_before } = params;
    const types = new Set(toList(params.types));
    const since = Number(findText(params.created as never, 'gte') ?? 0);
    const all = this.account
      .listObjects(object)
      .filter(
        (item) =>
          (payment_intent === undefined || item.payment_intent === payment_intent) &&
          (types.size === 0 || types.has(item.type)) &&
          item.created >= since,
      );
    const at = (id: unknown) => all.findIndex((item) => item.id === id);
    const before = ending_before === undefined ? all : all.slice(0, Math.max(0, at(ending_before)));
    const rest = before.slice(at(starting_after) + 1);
    const page = ending_before === undefined ? rest.slice(0, limit) : rest.slice(-limit);
    const expands = parseExpandPaths(call).map((path) => path.replace(/^data\./, ''));
    const data = page.map((item) => this.expandFields(item, expands));
    this.send(call, { object: 'list', data, has_more: rest.length > page.length, url: `/v1/${object}s` });
  }

  private async performAction(call: Call): Promise<void> {
    const {
      do: action,
      report,
      amount,
      total,
      settled_in,
      refund,
      fee_later,
      ...unknown
    } = parseObject(await call.readText()) ?? {};
    for (const name in unknown) throw badRequestError(`unknown option "${name}"`);
    const webhookReport = report === 'at once' ? report : parseReportMode(report);
    const options = { amount, total, settledIn: settled_in, refund, feeLater: fee_later } as ActionOptions;
    const definedOptions = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    const events = this.account.performAction(call.parameter, String(action), definedOptions);
    this.webhooks.report(events, webhookReport);
    call.sendJson(200, { events });
  }

  /** @throws HttpError 404 if the session is unknown, 400 if it is not open */
  private getOpenSession(call: Call): StripeObject {
    const session = this.account.getSession(call.parameter);
    if (session.status !== 'open') throw badRequestError('the session of this page is not open');
    return session;
  }

  /** Replaces the ids at the paths with their objects. The path `refunds` of a charge adds its latest refunds. */
  private expandFields(of: StripeObject, paths: readonly string[]): StripeObject {
    const expanded = { ...of };
    for (const [field = '', below] of Map.groupBy(paths, (path) => path.split('.')[0])) {
      const inner = typeof expanded[field] === 'string' ? this.account.find(expanded[field]) : undefined;
      const rest = below.map((path) => path.slice(field.length + 1)).filter((path) => path !== '');
      if (inner) expanded[field] = this.expandFields(inner, rest);
      if (expanded.object === 'charge' && field === 'refunds') expanded.refunds = this.toRefundList(expanded);
    }
    return expanded;
  }

  private toRefundList({ id }: StripeObject): object {
    const data = this.account.listObjects('refund').filter(({ charge }) => charge === id);
    return { object: 'list', data: data.slice(0, DEFAULT_LIMIT), has_more: data.length > DEFAULT_LIMIT };
  }

  private send(call: Call, body: object, headers = {}): void {
    const json = JSON.stringify(body, (name, value) => (INTERNAL_FIELDS.has(name) ? undefined : value));
    call.sendJsonText(200, json, { 'request-id': `req_${call.request.socket.remotePort}`, ...headers });
  }
}

/** Accepts any secret or restricted key. @throws HttpError 401 */
function authorize(call: Call): Call {
  if (/^Bearer (sk|rk)_\w+$/.test(call.request.headers.authorization ?? '')) return call;
  throw createError(401, { type: 'invalid_request_error', message: 'Invalid API Key provided' });
}

function parseExpandPaths(call: Call): readonly string[] {
  return toList(parseParams(call.query.toString()).expand).filter((path) => typeof path === 'string');
}

function renderPayPage({ amount_total, currency, cancel_url }: StripeObject): Buffer {
  const amount = `${(amount_total / 100).toFixed(2)} ${String(currency).toUpperCase()}`;
  const cancel = String(cancel_url).replaceAll(/[&"<>]/g, (character) => `&#${character.charCodeAt(0)};`);
  return Buffer.from(
    `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Simulated card payment</title>` +
      `<h1>Simulated card payment</h1><p>${amount}. No card is needed, and no money moves.</p>` +
      `<form method="post"><button>Pay ${amount}</button></form><p><a href="${cancel}">Cancel</a></p></html>`,
  );
}

function badRequestError(error: string): HttpError {
  return new HttpError(400, { error });
}
