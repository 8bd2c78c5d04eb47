/** Calls the operations of the OpenAPI document with their examples, as one account. */

import { parsePublicKey, sealRequest } from '#ehbp';
import type { OpenApiDocument, PathOperation } from '../../../../apps/gateway/src/openapi/document.ts';
import { createForm, PIXEL } from '../inputs/forms.ts';
import type { TestResponse } from './test-response.ts';
import type { TestAccount, TestWorld } from './world.ts';

/** An operation at one of its paths. */
export interface DocumentedOperation {
  /** In upper case. */
  readonly method: string;
  readonly path: string;
  readonly operation: PathOperation;
}

export function listOperations({ paths }: OpenApiDocument): readonly DocumentedOperation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

export function getExample({ requestBody }: PathOperation): unknown {
  return Object.values(requestBody?.content ?? {})[0]?.example;
}

/** Whether the body is a form. An operation that accepts both is called with JSON. */
export function takesForm({ requestBody }: PathOperation): boolean {
  return Object.keys(requestBody?.content ?? {})[0] === 'multipart/form-data';
}

/** Converts fields to a body of the operation. */
export function toOperationBody(operation: PathOperation, fields: unknown): unknown {
  return takesForm(operation) ? createForm(fields as Record<string, string>) : fields;
}

/** An encrypted body may contain anything. */
export function isEncrypted({ operation }: DocumentedOperation): boolean {
  return operation.requestBody?.content['application/octet-stream'] !== undefined;
}

export class OperationCaller {
  private nameNumber = 0;
  /** Created once, because it takes a while. It can be polled any number of times. */
  private videoId: Promise<string | undefined> | undefined;

  constructor(
    private readonly world: TestWorld,
    private readonly account: TestAccount,
  ) {}

  /** @param fields of the body, by default the example of the operation */
  async send(
    target: DocumentedOperation,
    headers: Readonly<Record<string, string>>,
    fields = getExample(target.operation),
  ): Promise<TestResponse> {
    const { method, operation } = target;
    if (isEncrypted(target)) return this.sendEncrypted(target, headers);
    const body = toOperationBody(operation, fields);
    return this.world.send(method, await this.createTarget(target), { headers, body });
  }

  /** Returns the header for a security scheme of the document. */
  createCredential(scheme: string): Readonly<Record<string, string>> {
    const { apiKey, creditId } = this.account;
    if (scheme === 'bearer') return { authorization: `Bearer ${apiKey}` };
    return { [scheme]: scheme === 'x-credit-id' ? creditId : apiKey };
  }

  /** Returns the path and the query with their examples. Creates the object that the path names, if it has to exist. */
  async createTarget({ path, operation }: DocumentedOperation): Promise<string> {
    const { operationId, 'x-alias-of': aliasOf = operationId, parameters } = operation;
    if (aliasOf === 'getMedia') {
      const signed = await this.world.storeFile(PIXEL, 'image/png');
      return path.startsWith('/v1/') ? signed : signed.replace('/v1/', '/');
    }
    const id = await this.ids[aliasOf]?.();
    const search = new URLSearchParams();
    let target = path;
    for (const { name, in: where, example } of parameters) {
      if (where === 'path') target = target.replace(`{${name}}`, id ?? String(example));
      else if (example !== undefined) search.set(name, String(example));
    }
    return search.size > 0 ? `${target}?${search}` : target;
  }

  /**
   * Returns the example of an operation. Its `name` is replaced with an unused one, and its `nwc_url` with that of a
   * new wallet.
   */
  async createExample({ operation }: DocumentedOperation): Promise<unknown> {
    const example = getExample(operation) as Record<string, unknown> | undefined;
    if (example && 'nwc_url' in example) return { ...example, nwc_url: (await this.world.createNwcWallet()).nwc_url };
    return example && 'name' in example ? { ...example, name: `example ${this.nameNumber++}` } : example;
  }

  /** By operation: creates the object that the path names, and returns its id; undefined if that is rejected. */
  private readonly ids: Readonly<Record<string, () => Promise<string | undefined>>> = {
    getKey: () => this.createKey(),
    updateKey: () => this.createKey(),
    revokeKey: () => this.createKey(),
    getResponse: () => this.createResponse(),
    listInputItems: () => this.createResponse(),
    deleteResponse: () => this.createResponse(),
    getTopup: () => this.createTopup(),
    getCheckout: () => this.createTopup(),
    getVideo: () => this.getVideoId(),
    getVideoContent: () => this.getVideoId(),
  };

  private getVideoId(): Promise<string | undefined> {
    this.videoId ??= this.createVideo();
    return this.videoId;
  }

  private async createKey(): Promise<string | undefined> {
    const headers = this.createCredential('x-credit-id');
    const { body } = await this.world.send('POST', '/keys', { headers, body: { name: `key ${this.nameNumber++}` } });
    return body.data?._id;
  }

  private async createResponse(): Promise<string | undefined> {
    const request = { model: 'openai/gpt-5-mini', input: 'Hello' };
    return (await this.world.post('/v1/responses', request, this.account)).body.id;
  }

  private async createTopup(): Promise<string | undefined> {
    const request = { amount: 1, currency: 'USD' };
    return (await this.world.post('/topup/create/btc-lightning', request, this.account)).body.invoice_id;
  }

  private async createVideo(): Promise<string | undefined> {
    const request = { model: 'kling/kling-2.5-turbo', prompt: 'A harbour' };
    const { id } = (await this.world.post('/v1/videos', request, this.account)).body;
    if (id === undefined) return undefined;
    const isReady = async () => (await this.world.get(`/v1/videos/${id}`, this.account)).status === 200;
    await this.world.waitUntil(isReady);
    return id;
  }

  private async sendEncrypted(
    { method, path, operation }: DocumentedOperation,
    headers: Readonly<Record<string, string>>,
  ): Promise<TestResponse> {
    const model = operation.parameters.find(({ name }) => name === 'X-Private-Model')?.example as string;
    const enclave = model.slice('private/'.length);
    const config = await fetch(`${this.world.sandbox}/enclaves/${enclave}/.well-known/hpke-keys`);
    const chat = { model: enclave, messages: [{ role: 'user', content: 'Hello' }] };
    const key = parsePublicKey(await config.bytes());
    const { encapsulatedKey, frames } = await sealRequest(key, Buffer.from(JSON.stringify(chat)));
    const keyHeaders = { 'x-private-model': model, 'ehbp-encapsulated-key': encapsulatedKey };
    const request = { body: Buffer.concat(frames), headers: { ...headers, ...keyHeaders } };
    return this.world.send(method, path, request);
  }
}
