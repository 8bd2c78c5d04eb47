/**
 * Serves requests to all simulated data providers: checks the key, applies the directive, responds and bills.
 */

import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { type JsonObject } from '#kernel';
import type { SandboxBill } from '../bill.ts';
import { dropResponse, isBilled, type SandboxFile, sendFile } from '../media/sandbox-file.ts';
import { DATA_ERROR_FAULTS, type Directive, type Fault, parseDirective } from '../provider/directive.ts';
import { applyFault, FaultCounter } from '../provider/faults.ts';
import { type Call, HttpError, parseObject, type Routes } from '../router.ts';
import { Seed } from './generated-data.ts';
import { ReceivedRequests } from './received.ts';
import type { DataVendor, DataVendorRequest, DataVendorResult, KeyLocation, Lookup, LookupPath } from './vendor.ts';

/** The key that every provider rejects. Any other key is accepted. */
const INVALID_KEY = 'wrong';
const FAULT_MESSAGE = 'As the sandbox was instructed.';
const ERROR_FAULTS: ReadonlySet<string> = new Set(['400', '429', '500', ...DATA_ERROR_FAULTS]);
const JSON_FILE = { type: 'application/json' } as const;
const PADDING_BYTES = 64 * 1024;

interface VendorCall {
  readonly call: Call;
  readonly vendor: DataVendor;
  readonly key: string;
  readonly text: string;
}

export class DataVendors {
  private readonly faults = new FaultCounter();
  private readonly received = new ReceivedRequests();
  /** Directives by provider, for requests whose fields contain none that applies. */
  private readonly directiveTexts = new Map<string, string>();

  constructor(
    private readonly bill: SandboxBill,
    private readonly vendors: readonly DataVendor[],
  ) {}

  routes(): Routes {
    const routes: Record<string, (call: Call) => void | Promise<void>> = {
      'GET /data-vendors': (call) => call.sendJson(200, this.vendors.map(describeVendor)),
      'GET /data-vendors/received': (call) => call.sendJson(200, this.received.list()),
      'DELETE /data-vendors/received': (call) => {
        this.received.clear();
        call.sendJson(200, []);
      },
      'PUT /data-vendors/:vendor': (call) => this.setDirective(call),
    };
    for (const vendor of this.vendors)
      for (const method of ['GET', 'POST']) routes[`${method} /${vendor.name}/*`] = (call) => this.serve(vendor, call);
    return routes;
  }

  private async setDirective(call: Call): Promise<void> {
    const { directive } = parseObject(await call.readText()) ?? {};
    if (!this.vendors.some(({ name }) => name === call.parameter) || typeof directive !== 'string')
      throw new HttpError(400, { error: 'use PUT /data-vendors/<provider> {"directive": "[[sandbox …]]" or ""}' });
    parseDirective(directive);
    this.directiveTexts.set(call.parameter, directive);
    call.sendJson(200, { vendor: call.parameter, directive });
  }

  private async serve(vendor: DataVendor, call: Call): Promise<void> {
    const { method = '', url = '', headers } = call.request;
    if (method === 'GET' && `/${call.parameter}` === vendor.keyCheck?.path) {
      parseKey(call, vendor);
      return call.sendJson(200, vendor.keyCheck.body);
    }
    const text = await call.readText();
    this.received.add({ vendor: vendor.name, method, url, headers, body: text });
    const request: VendorCall = { call, vendor, text, key: parseKey(call, vendor) };
    const [lookup, inPath] = selectLookup(vendor, `${method} /${call.parameter}`);
    const fields = parseFields(request);
    const directive = this.selectDirective(request, fields);
    const fault = this.faults.selectFault(directive, vendor.name);
    if (directive.latency > 0) await delay(directive.latency, undefined, { ref: false });
    if (applyFault(fault === '400' ? undefined : fault, call, (status) => createFaultError(vendor, status))) return;
    const id = randomUUID();
    const count = (defaultCount: number) => (fault === 'empty' ? 0 : (directive.results ?? defaultCount));
    const lookupRequest = toLookupRequest(request, fields, inPath, count);
    const result = this.executeLookup(lookup, lookupRequest, { id, request, fault });
    if (isBilled(fault)) this.charge(lookup, lookupRequest, result.results, { id, request, fault });
    await send(request, result, { id, directive, fault });
  }

  /**
   * Returns the directive in the fields of the request, else the one that is set for the provider. If the provider also
   * serves searches of chats, a directive in the fields applies only if its `at` is the name of the provider.
   */
  private selectDirective({ vendor, call, text }: VendorCall, fields: JsonObject): Directive {
    const canHaveDirective = text.includes('[[sandbox') || (call.request.url ?? '').includes('sandbox');
    const vendorDirective = parseDirective(this.directiveTexts.get(vendor.name) ?? '');
    const directiveText = canHaveDirective ? findDirectiveText(fields) : undefined;
    if (directiveText === undefined) return vendorDirective;
    const directive = parseDirective(directiveText);
    return vendor.requiresNamedDirective && directive.at !== vendor.name ? vendorDirective : directive;
  }

  private executeLookup(lookup: Lookup, lookupRequest: DataVendorRequest, charged: ChargeParams): DataVendorResult {
    const { fault, request } = charged;
    try {
      if (fault === 'pending') throw new HttpError(202, { status: 'processing' });
      if (fault === 'tells_key')
        throw request.vendor.createError(400, `The request with the key ${request.key} is invalid.`);
      if (fault !== undefined && ERROR_FAULTS.has(fault))
        throw request.vendor.createError(Number(fault), FAULT_MESSAGE);
      return lookup.execute(lookupRequest);
    } catch (error) {
      const isMissing = error instanceof HttpError && error.status === 404;
      if (isMissing && lookup.billsNotFound) this.charge(lookup, lookupRequest, 1, charged);
      throw error;
    }
  }

  private charge(
    { usd, per, billsEmptyResults }: Lookup,
    lookupRequest: DataVendorRequest,
    results: number,
    charged: ChargeParams,
  ): void {
    const quantity = per === 'result' ? results : Number(results > 0 || billsEmptyResults === true);
    if (quantity === 0) return;
    const { call, vendor } = charged.request;
    const price = typeof usd === 'string' ? usd : usd(lookupRequest);
    const [path = ''] = call.parameter.split('?');
    const units = { unit: per ?? 'call', quantity, per: 1, price };
    this.bill.chargeUnits(charged.id, `${vendor.name}/${path}`, units, charged.fault);
  }
}

interface ChargeParams {
  /** Id of the request at the provider and of its line on the bill. */
  readonly id: string;
  readonly request: VendorCall;
  readonly fault: Fault | undefined;
}

function describeVendor({ name, keys, lookups }: DataVendor) {
  return { name, keys, lookups: Object.keys(lookups) };
}

/**
 * Returns the first key in the places that the provider accepts.
 * @throws HttpError if there is none, or it is INVALID_KEY
 */
function parseKey(call: Call, vendor: DataVendor): string {
  const presentedKey = vendor.keys.map((place) => getKey(call, place)).find((key) => key !== '') ?? '';
  if (presentedKey !== '' && presentedKey !== INVALID_KEY) return presentedKey;
  throw vendor.createKeyError?.(presentedKey === '') ?? vendor.createError(401, 'Invalid or missing API key.');
}

function getKey(call: Call, { in: place, name, prefix = '' }: KeyLocation): string {
  const value = place === 'query' ? call.query.get(name) : call.request.headers[name];
  return typeof value === 'string' && value.startsWith(prefix) ? value.slice(prefix.length).trim() : '';
}

function selectLookup(vendor: DataVendor, route: string): readonly [Lookup, inPath: string] {
  if (Object.hasOwn(vendor.lookups, route)) return [vendor.lookups[route as LookupPath] as Lookup, ''];
  for (const [path, lookup] of Object.entries(vendor.lookups)) {
    const [before = '', after] = path.split(/\{\w+\}/);
    if (after === undefined || !route.startsWith(before) || !route.endsWith(after)) continue;
    const inPath = route.slice(before.length, route.length - after.length);
    if (/^[^/]+$/.test(inPath)) return [lookup, decodeURIComponent(inPath)];
  }
  throw vendor.createError(404, `Unknown route ${route}.`);
}

function parseFields({ call, vendor, text }: VendorCall): JsonObject {
  if (call.request.method === 'GET') {
    const inQuery = vendor.keys.filter((place) => place.in === 'query').map(({ name }) => name);
    return Object.fromEntries([...call.query].filter(([name]) => !inQuery.includes(name)));
  }
  const body = parseObject(text === '' ? '{}' : text);
  if (!body) throw vendor.createError(400, 'The body is not a JSON object.');
  return body;
}

function createFaultError(vendor: DataVendor, fault: string): HttpError {
  return vendor.createError(fault === 'overloaded' ? 503 : Number(fault), FAULT_MESSAGE);
}

/** Returns the first text with a directive, at any depth. */
function findDirectiveText(value: unknown): string | undefined {
  if (typeof value === 'string') return value.includes('[[sandbox') ? value : undefined;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const nested of Object.values(value)) {
    const text = findDirectiveText(nested);
    if (text !== undefined) return text;
  }
  return undefined;
}

function toLookupRequest(
  { call, vendor }: VendorCall,
  fields: JsonObject,
  inPath: string,
  count: DataVendorRequest['count'],
): DataVendorRequest {
  const seed = new Seed(JSON.stringify([vendor.name, inPath, fields]));
  return { fields, pathParameter: inPath, headers: call.request.headers, seed, count };
}

interface SendOptions {
  readonly id: string;
  readonly directive: Directive;
  readonly fault: Fault | undefined;
}

async function send(
  { call, text }: VendorCall,
  result: DataVendorResult,
  { id, directive, fault }: SendOptions,
): Promise<void> {
  if (fault === 'lost') return dropResponse(call);
  const { method, url, headers } = call.request;
  const body = fault === 'echo' ? { ...result.body, echo: { method, url, headers, body: text } } : result.body;
  const directedFile = directive.text === undefined ? undefined : { ...JSON_FILE, bytes: Buffer.from(directive.text) };
  const file = directedFile ?? result.file ?? { ...JSON_FILE, bytes: Buffer.from(JSON.stringify(body)) };
  call.response.setHeader('x-request-id', id);
  if (directive.bytes !== undefined) return sendPadded(call.response, file, directive.bytes);
  const fileFaults = { malformed: 'truncated', cut: 'broken' } as const;
  return sendFile(call, file, fault === 'malformed' || fault === 'cut' ? fileFaults[fault] : fault);
}

/** Sends a file, padded with spaces to at least `size` bytes. JSON stays valid; image readers ignore the spaces. */
async function sendPadded(response: ServerResponse, { type, bytes }: SandboxFile, size: number): Promise<void> {
  const length = Math.max(size, bytes.length);
  response.writeHead(200, { 'content-type': type, 'content-length': length });
  await pipeline(Readable.from(padWithSpaces(bytes, length)), response).catch(() => {}); // the client may disconnect
}

function* padWithSpaces(bytes: Buffer, length: number): Generator<Buffer> {
  yield bytes;
  const space = Buffer.alloc(PADDING_BYTES, ' ');
  for (let remaining = length - bytes.length; remaining > 0; remaining -= space.length)
    yield remaining < space.length ? space.subarray(0, remaining) : space;
}
