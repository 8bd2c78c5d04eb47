/**
 * LND's REST API for the node. Sources: api.lightning.community, and grpc-gateway for the format of errors. Known
 * pitfalls for clients are simulated: bytes are base64 and 64-bit numbers are strings. A subscription with
 * `settle_index=0` replays no settled invoices (lnd #2469). Every subscription also reports new invoices. Its headers
 * are sent with the first message.
 */
import { type Call, type Handler, HttpError, parseObject, type Routes } from '../router.ts';
import { MAX_DESCRIPTION_BYTES } from './bolt11.ts';
import { type LightningInvoice, type LightningNode, MIN_FINAL_CLTV } from './node.ts';

const DEFAULT_EXPIRY_SECONDS = 86_400;
const MAX_EXPIRY_SECONDS = 365 * 86_400;

/** gRPC status codes, with the HTTP status of each. */
const CODES = { unknown: [2, 500], invalid: [3, 400], notFound: [5, 404] } as const;

/** The request fields of LND's `Invoice`. The sandbox simulates only some of them. */
const FIELDS: ReadonlySet<string> = new Set([
  'memo',
  'r_preimage',
  'value',
  'value_msat',
  'description_hash',
  'expiry',
  'fallback_addr',
  'cltv_expiry',
  'route_hints',
  'private',
  'is_amp',
  'is_blinded',
  'blinded_path_config',
]);
const SIMULATED_FIELDS: ReadonlySet<string> = new Set(['memo', 'value', 'value_msat', 'expiry', 'private']);

export function lndRoutes(node: LightningNode): Routes {
  const routes: Record<string, Handler> = {
    'POST /lnd/v1/invoices': async (call) => addInvoice(node, call),
    'GET /lnd/v1/invoice/:r_hash': (call) => call.sendJson(200, toInvoiceJson(node, getInvoice(node, call.parameter))),
    'GET /lnd/v1/invoices/subscribe': (call) => subscribeInvoices(node, call),
    'GET /lnd/v1/getinfo': (call) => call.sendJson(200, createInfo(node)),
  };
  const guarded = Object.entries(routes).map(([route, handler]) => [route, withMacaroon(handler)]);
  return Object.fromEntries(guarded);
}

/** Any macaroon in hexadecimal is accepted, but one is required. */
function withMacaroon(handler: Handler): Handler {
  return (call) => {
    const macaroon = call.request.headers['grpc-metadata-macaroon'];
    if (!macaroon) throw createError('unknown', 'expected 1 macaroon, got 0');
    if (!/^([0-9a-f]{2})+$/i.test(String(macaroon))) throw createError('unknown', 'encoding/hex: invalid byte');
    return handler(call);
  };
}

async function addInvoice(node: LightningNode, call: Call): Promise<void> {
  const body = parseObject(await call.readText());
  if (!body) throw createError('invalid', 'proto: syntax error (line 1:1): unexpected token');
  for (const name in body) {
    if (!FIELDS.has(name)) throw createError('invalid', `proto: (line 1:2): unknown field "${name}"`);
    if (!SIMULATED_FIELDS.has(name) && body[name])
      throw createError('invalid', `the sandbox does not simulate "${name}"`);
  }
  const { memo = '', value, value_msat, expiry } = body;
  const msat = parseInt64('value_msat', value_msat);
  const sat = parseInt64('value', value);
  if (msat > 0n && sat > 0n) throw createError('unknown', 'sat and msat arguments are mutually exclusive');
  if (msat < 0n || sat < 0n) throw createError('unknown', 'payments of negative value are not allowed');
  if (typeof memo !== 'string') throw createError('invalid', 'proto: (line 1:2): invalid value for string field memo');
  if (Buffer.byteLength(memo) > MAX_DESCRIPTION_BYTES) {
    throw createError('unknown', `memo too large: ${Buffer.byteLength(memo)} bytes (maxsize=${MAX_DESCRIPTION_BYTES})`);
  }
  const amount = { msat: msat || sat * 1000n, memo, expirySeconds: parseExpirySeconds(parseInt64('expiry', expiry)) };
  const { hash, paymentRequest, addIndex, paymentAddress } = node.issue(amount);
  call.sendJson(200, {
    r_hash: hash.toString('base64'),
    payment_request: paymentRequest,
    add_index: String(addIndex),
    payment_addr: paymentAddress.toString('base64'),
  });
}

function parseExpirySeconds(expiry: bigint): number {
  if (expiry < 0n) throw createError('unknown', `negative payment expiry of ${expiry} seconds is not allowed`);
  if (expiry > MAX_EXPIRY_SECONDS) {
    throw createError(
      'unknown',
      `expiry of ${expiry} seconds greater than max expiry of ${MAX_EXPIRY_SECONDS} seconds`,
    );
  }
  return Number(expiry) || DEFAULT_EXPIRY_SECONDS;
}

/** In protobuf JSON a 64-bit number is a number or a string. */
function parseInt64(name: string, value: unknown): bigint {
  if (value === undefined || value === null) return 0n;
  const valid = typeof value === 'string' ? /^-?\d{1,18}$/.test(value) : Number.isSafeInteger(value);
  if (!valid)
    throw createError('invalid', `proto: (line 1:2): invalid value for int64 field ${name}: ${JSON.stringify(value)}`);
  return BigInt(value as string | number);
}

function getInvoice(node: LightningNode, hash: string): LightningInvoice {
  if (!/^([0-9a-f]{2})*$/i.test(hash)) throw createError('unknown', 'encoding/hex: invalid byte');
  if (hash.length !== 64) {
    throw createError('invalid', `payment hash must be exactly 32 bytes, is instead ${hash.length / 2}`);
  }
  const invoice = node.find(hash.toLowerCase());
  if (!invoice) throw createError('notFound', 'unable to locate invoice');
  return invoice;
}

function subscribeInvoices(node: LightningNode, { query, response }: Call): void {
  const [addIndex, settleIndex] = [parseIndex(query, 'add_index'), parseIndex(query, 'settle_index')];
  response.setHeader('content-type', 'application/json');
  const send = (invoice: LightningInvoice) =>
    response.write(`${JSON.stringify({ result: toInvoiceJson(node, invoice) })}\n`);
  if (addIndex > 0) node.listAddedInvoices(addIndex).forEach(send);
  if (settleIndex > 0) node.listSettledInvoices(settleIndex).forEach(send);
  const unsubscribe = node.subscribe(send);
  response.on('close', unsubscribe);
}

function parseIndex(query: URLSearchParams, name: string): number {
  const text = query.get(name) ?? '0';
  if (!/^\d{1,15}$/.test(text))
    throw createError('invalid', `parsing field "${name}": strconv.ParseUint: parsing "${text}"`);
  return Number(text);
}

/** Returns an invoice in LND's format, including fields that have no value. */
function toInvoiceJson(node: LightningNode, invoice: LightningInvoice) {
  const { payment, msat, created } = invoice;
  const paid = payment?.msat ?? 0n;
  return {
    memo: invoice.memo,
    r_preimage: invoice.preimage.toString('base64'),
    r_hash: invoice.hash.toString('base64'),
    value: String(msat / 1000n),
    value_msat: String(msat),
    settled: payment !== undefined,
    creation_date: String(created),
    settle_date: String(payment?.at ?? 0),
    payment_request: invoice.paymentRequest,
    description_hash: '',
    expiry: String(invoice.expirySeconds),
    fallback_addr: '',
    cltv_expiry: String(MIN_FINAL_CLTV),
    route_hints: [],
    private: false,
    add_index: String(invoice.addIndex),
    settle_index: String(payment?.settleIndex ?? 0),
    amt_paid: String(paid),
    amt_paid_sat: String(paid / 1000n),
    amt_paid_msat: String(paid),
    state: node.getState(invoice),
    htlcs: payment ? [toHtlcJson(payment.msat, payment.at, payment.settleIndex)] : [],
    features: {},
    is_keysend: false,
    payment_addr: invoice.paymentAddress.toString('base64'),
    is_amp: false,
    amp_invoice_state: {},
    is_blinded: false,
    blinded_path_config: null,
  };
}

function toHtlcJson(msat: bigint, at: number, index: number) {
  return {
    chan_id: '118747255865345',
    htlc_index: String(index),
    amt_msat: String(msat),
    accept_height: 100,
    accept_time: String(at),
    resolve_time: String(at),
    expiry_height: 100 + MIN_FINAL_CLTV,
    state: 'SETTLED',
    custom_records: {},
    mpp_total_amt_msat: String(msat),
    amp: null,
  };
}

function createInfo(node: LightningNode) {
  return {
    version: '0.18.5-beta.sandbox',
    commit_hash: '',
    identity_pubkey: node.publicKey,
    alias: 'sandbox',
    color: '#3399ff',
    num_pending_channels: 0,
    num_active_channels: 1,
    num_inactive_channels: 0,
    num_peers: 1,
    block_height: 100,
    block_hash: '0'.repeat(64),
    best_header_timestamp: String(node.getUnixTime()),
    synced_to_chain: true,
    synced_to_graph: true,
    testnet: false,
    chains: [{ chain: 'bitcoin', network: 'regtest' }],
    uris: [],
    features: {},
    require_htlc_interceptor: false,
    store_final_htlc_resolutions: false,
  };
}

function createError(name: keyof typeof CODES, message: string): HttpError {
  const [code, status] = CODES[name];
  return new HttpError(status, { code, message, details: [] });
}
