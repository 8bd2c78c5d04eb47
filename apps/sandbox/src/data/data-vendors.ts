/** One request to a vendor of data: its key, what a directive wants, the answer, the bill. The same for all of them. */
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { SandboxBill } from '../bill.ts';
import { isBilled, loseAnswer, type SandboxFile, sendFile } from '../media/sandbox-file.ts';
import { DATA_REFUSALS, type Directive, type Fault, readDirective } from '../provider/directive.ts';
import { applyFault, FaultCounter } from '../provider/faults.ts';
import { type Call, parseObject, Refusal, type Routes } from '../router.ts';
import { Seed } from './invented.ts';
import { ReceivedRequests } from './received.ts';
import type {
  DataVendor,
  DataVendorRequest,
  DataVendorResult,
  JsonObject,
  KeyPlace,
  Lookup,
  LookupPath,
} from './vendor.ts';

/** The one key that is no vendor's. */
const WRONG_KEY = 'wrong';
const AS_TOLD = 'As the sandbox was instructed.';
const REFUSALS: ReadonlySet<string> = new Set(['400', '429', '500', ...DATA_REFUSALS]);
const JSON_FILE = { type: 'application/json' } as const;
const PADDING_BYTES = 64 * 1024;

interface Request {
  readonly call: Call;
  readonly vendor: DataVendor;
  readonly key: string;
  readonly text: string;
}

export class DataVendors {
  private readonly faults = new FaultCounter();
  private readonly received = new ReceivedRequests();
  /** For requests that have no room for words: the directive of all that a vendor is asked. */
  private readonly told = new Map<string, string>();

  constructor(
    private readonly bill: SandboxBill,
    private readonly vendors: readonly DataVendor[],
  ) {}

  routes(): Routes {
    const routes: Record<string, (call: Call) => void | Promise<void>> = {
      'GET /data-vendors': (call) => call.json(200, this.vendors.map(described)),
      'GET /data-vendors/received': (call) => call.json(200, this.received.list()),
      'DELETE /data-vendors/received': (call) => {
        this.received.clear();
        call.json(200, []);
      },
      'PUT /data-vendors/:vendor': (call) => this.tell(call),
    };
    for (const vendor of this.vendors)
      for (const method of ['GET', 'POST']) routes[`${method} /${vendor.name}/*`] = (call) => this.serve(vendor, call);
    return routes;
  }

  private async tell(call: Call): Promise<void> {
    const { directive } = parseObject(await call.text()) ?? {};
    if (!this.vendors.some(({ name }) => name === call.parameter) || typeof directive !== 'string')
      throw new Refusal(400, { error: 'PUT /data-vendors/<one of them> {"directive": "[[sandbox …]]" or ""}' });
    readDirective(directive);
    this.told.set(call.parameter, directive);
    call.json(200, { vendor: call.parameter, directive });
  }

  private async serve(vendor: DataVendor, call: Call): Promise<void> {
    const { method = '', url = '', headers } = call.request;
    const text = await call.text();
    this.received.add({ vendor: vendor.name, method, url, headers, body: text });
    const request: Request = { call, vendor, text, key: keyIn(call, vendor) };
    const [lookup, inPath] = lookupAt(vendor, `${method} /${call.parameter}`);
    const fields = fieldsOf(request);
    const directive = this.directiveIn(request, fields);
    const fault = this.faults.next(directive, vendor.name);
    if (directive.latency > 0) await delay(directive.latency, undefined, { ref: false });
    if (applyFault(fault === '400' ? undefined : fault, call, (status) => refusalAsTold(vendor, status))) return;
    const id = randomUUID();
    const count = (usual: number) => (fault === 'empty' ? 0 : (directive.results ?? usual));
    const asked = askedOf(request, fields, inPath, count);
    const found = this.answerOf(lookup, asked, { id, request, fault });
    if (isBilled(fault)) this.charge(lookup, asked, found.results, { id, request, fault });
    await send(request, found, { id, directive, fault });
  }

  /** In the words of a request; those of a vendor that serves others too are only meant for it if they name it. */
  private directiveIn({ vendor, call, text }: Request, fields: JsonObject): Directive {
    const mayHave = text.includes('[[sandbox') || (call.request.url ?? '').includes('sandbox');
    const told = readDirective(this.told.get(vendor.name) ?? '');
    const words = mayHave ? wordsIn(fields) : undefined;
    if (words === undefined) return told;
    const directive = readDirective(words);
    return vendor.onlyNamed && directive.at !== vendor.name ? told : directive;
  }

  private answerOf(lookup: Lookup, asked: DataVendorRequest, charged: Charged): DataVendorResult {
    const { fault, request } = charged;
    try {
      if (fault === 'pending') throw new Refusal(202, { status: 'processing' });
      if (fault === 'tells_key')
        throw request.vendor.refusal(400, `The request with the key ${request.key} is invalid.`);
      if (fault !== undefined && REFUSALS.has(fault)) throw request.vendor.refusal(Number(fault), AS_TOLD);
      return lookup.answer(asked);
    } catch (error) {
      const isMissing = error instanceof Refusal && error.status === 404;
      if (isMissing && lookup.billsNotFound) this.charge(lookup, asked, 1, charged);
      throw error;
    }
  }

  private charge(
    { usd, per, billsNothingFound }: Lookup,
    asked: DataVendorRequest,
    results: number,
    charged: Charged,
  ): void {
    const quantity = per === 'result' ? results : Number(results > 0 || billsNothingFound === true);
    if (quantity === 0) return;
    const { call, vendor } = charged.request;
    const price = typeof usd === 'string' ? usd : usd(asked);
    const [path = ''] = call.parameter.split('?');
    const units = { unit: per ?? 'call', quantity, per: 1, price };
    this.bill.chargeUnits(charged.id, `${vendor.name}/${path}`, units, charged.fault);
  }
}

interface Charged {
  /** Of the request at the vendor, and of its line on the bill. */
  readonly id: string;
  readonly request: Request;
  readonly fault: Fault | undefined;
}

function described({ name, keys, lookups }: DataVendor) {
  return { name, keys, lookups: Object.keys(lookups) };
}

/** @throws Refusal where the key is not where this vendor wants it */
function keyIn(call: Call, vendor: DataVendor): string {
  const given = vendor.keys.map((place) => keyAt(call, place)).find((key) => key !== '') ?? '';
  if (given !== '' && given !== WRONG_KEY) return given;
  throw vendor.wrongKey?.(given === '') ?? vendor.refusal(401, 'Invalid or missing API key.');
}

function keyAt(call: Call, { in: place, name, prefix = '' }: KeyPlace): string {
  const value = place === 'query' ? call.query.get(name) : call.request.headers[name];
  return typeof value === 'string' && value.startsWith(prefix) ? value.slice(prefix.length).trim() : '';
}

function lookupAt(vendor: DataVendor, asked: string): readonly [Lookup, inPath: string] {
  if (Object.hasOwn(vendor.lookups, asked)) return [vendor.lookups[asked as LookupPath] as Lookup, ''];
  for (const [path, lookup] of Object.entries(vendor.lookups)) {
    const [before = '', after] = path.split(/\{\w+\}/);
    if (after === undefined || !asked.startsWith(before) || !asked.endsWith(after)) continue;
    const inPath = asked.slice(before.length, asked.length - after.length);
    if (/^[^/]+$/.test(inPath)) return [lookup, decodeURIComponent(inPath)];
  }
  throw vendor.refusal(404, `There is no ${asked}.`);
}

function fieldsOf({ call, vendor, text }: Request): JsonObject {
  if (call.request.method === 'GET') {
    const inQuery = vendor.keys.filter((place) => place.in === 'query').map(({ name }) => name);
    return Object.fromEntries([...call.query].filter(([name]) => !inQuery.includes(name)));
  }
  const body = parseObject(text === '' ? '{}' : text);
  if (!body) throw vendor.refusal(400, 'The body is no JSON object.');
  return body;
}

function refusalAsTold(vendor: DataVendor, told: string): Refusal {
  return vendor.refusal(told === 'overloaded' ? 503 : Number(told), AS_TOLD);
}

/** The first text within, however deep, that has a directive. */
function wordsIn(value: unknown): string | undefined {
  if (typeof value === 'string') return value.includes('[[sandbox') ? value : undefined;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const each of Object.values(value)) {
    const words = wordsIn(each);
    if (words !== undefined) return words;
  }
  return undefined;
}

function askedOf(
  { call, vendor }: Request,
  fields: JsonObject,
  inPath: string,
  count: DataVendorRequest['count'],
): DataVendorRequest {
  const seed = new Seed(JSON.stringify([vendor.name, inPath, fields]));
  return { fields, inPath, headers: call.request.headers, seed, count };
}

interface Sending {
  readonly id: string;
  readonly directive: Directive;
  readonly fault: Fault | undefined;
}

async function send(
  { call, text }: Request,
  found: DataVendorResult,
  { id, directive, fault }: Sending,
): Promise<void> {
  if (fault === 'lost') return loseAnswer(call);
  const { method, url, headers } = call.request;
  const body = fault === 'echo' ? { ...found.body, echo: { method, url, headers, body: text } } : found.body;
  const told = directive.text === undefined ? undefined : { ...JSON_FILE, bytes: Buffer.from(directive.text) };
  const file = told ?? found.file ?? { ...JSON_FILE, bytes: Buffer.from(JSON.stringify(body)) };
  call.response.setHeader('x-request-id', id);
  if (directive.bytes !== undefined) return sendPadded(call.response, file, directive.bytes);
  const ofFile = { malformed: 'truncated', cut: 'broken' } as const;
  return sendFile(call, file, fault === 'malformed' || fault === 'cut' ? ofFile[fault] : fault);
}

/** Space after JSON is still JSON; what follows a picture is not looked at. */
async function sendPadded(response: ServerResponse, { type, bytes }: SandboxFile, size: number): Promise<void> {
  const length = Math.max(size, bytes.length);
  response.writeHead(200, { 'content-type': type, 'content-length': length });
  await pipeline(Readable.from(padded(bytes, length)), response).catch(() => {}); // who has had enough hangs up
}

function* padded(bytes: Buffer, length: number): Generator<Buffer> {
  yield bytes;
  const space = Buffer.alloc(PADDING_BYTES, ' ');
  for (let left = length - bytes.length; left > 0; left -= space.length)
    yield left < space.length ? space.subarray(0, left) : space;
}
