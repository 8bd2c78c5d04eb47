/** Stores responses as application data, not as events, so that later requests can continue their conversations. */
import type { Instant } from '#domain';
import { isJsonObject, type JsonObject, type Runtime, withTimeout } from '#kernel';
import type { Clock } from '../../clock.ts';
import { InvalidRequestError } from '../../errors.ts';
import { WorkParts } from '../../event-loop.ts';
import { type HeavyWorkQueue, MAX_SMALL_JSON_BYTES, type WorkStep } from '../../heavy-work-queue.ts';
import type { Secrets } from '../../secrets.ts';
import type { StorageQuota } from '../../storage-quota.ts';
import {
  MAX_CONVERSATION_CHARACTERS,
  type SerializedConversation,
  serializeConversation,
  serializeFull,
} from './serialize-conversation.ts';
import { type Conversation, joinParts, type LoadedConversation, type StoredPart } from './stored-parts.ts';

/** The same lifetime as at OpenAI. */
const RESPONSE_LIFETIME_MS = 30 * 24 * 60 * 60_000;
/** Parts of up to this size in total are parsed at once: hundreds of turns would take longer than parsing them. */
const MAX_BATCH_BYTES = 1024 * 1024;
/** How long a paid response waits to be stored. After that it is returned as not stored. */
export const STORE_TIMEOUT_MS = 2_000;
/**
 * Maximum lookups per request; further references count as not found. A lookup finds all items of the conversation up
 * to the response with the referenced item.
 */
const MAX_LOOKUPS = 32;
/** Maximum length of an item id. The ids of all providers are shorter. */
const MAX_ITEM_ID_LENGTH = 256;
const RESPONSE_ID = /^resp_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Messages of Anthropic's API are stored with their threads. */
const MESSAGE_ID = /^msg_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** A conversation, or a part of one: sealed JSON. */
export interface SealedConversation {
  /** The id of the master key that sealed it. */
  readonly key: string;
  readonly box: Buffer;
}

export interface StoredResponse {
  readonly id: string;
  readonly accountId: string;
  /** The response that this one continues; null if this one stores its complete conversation. */
  readonly previousId: string | null;
  readonly expiresAt: Instant;
  readonly sealed: SealedConversation;
  /** Ids of its output items, which later requests may reference. */
  readonly itemIds: readonly string[];
}

/** A stored response and the responses that it continues. */
export interface StoredChain {
  readonly id: string;
  /** In order, starting with the first response of the conversation. */
  readonly parts: readonly SealedConversation[];
}

/** The account whose stored responses a request reads, and the memory budget for reading them. */
export interface StoredResponseReader {
  readonly accountId: string;
  /** Reserves memory from the budget for requests before the bytes are read. @throws Error if none is left */
  reserveMemory(bytes: number): Promise<void>;
}

/** Identifies a stored response by its id, or by the id of one of its output items. */
export interface StoredResponseRef extends StoredResponseReader {
  readonly by: 'id' | 'item';
  readonly id: string;
  readonly now: Instant;
  /** Only the response itself is loaded, without the responses that it continues. */
  readonly withoutPrevious?: boolean;
}

/** The response that a new one continues was removed before the new one was stored. */
export class PreviousResponseRemovedError extends Error {}

/** Stores sealed responses. Expired responses are not found, but are retained while other responses continue them. */
export abstract class ResponseStore {
  /**
   * @returns false if the account would exceed `maxBytes`; then nothing is stored
   * @throws PreviousResponseRemovedError
   */
  abstract save(response: StoredResponse, maxBytes: number): Promise<boolean>;
  abstract find(reference: StoredResponseRef): Promise<StoredChain | undefined>;
  /** @returns whether the response existed and had not expired */
  abstract remove(accountId: string, id: string, now: Instant): Promise<boolean>;
  abstract removeExpired(now: Instant): Promise<void>;
  abstract getStoredBytes(accountId: string): Promise<number>;
}

/** Input with resolved references, and the conversations loaded for it. The response continues the first of these. */
export interface ResolvedInput {
  readonly input: readonly unknown[];
  readonly loadedConversations: readonly LoadedConversation[];
}

export interface ConversationDependencies {
  readonly responseStore: ResponseStore;
  readonly quota: StorageQuota;
  readonly secrets: Secrets;
  /** Parses long conversations. */
  readonly heavyWork: HeavyWorkQueue;
  readonly clock: Clock;
  readonly runtime: Pick<Runtime, 'reportError' | 'startTimer'>;
}

/** A response to be stored. */
export interface NewResponse {
  readonly accountId: string;
  readonly id: string;
  readonly conversation: Conversation;
  /** Output items that later requests can reference by id. */
  readonly outputItems?: readonly JsonObject[];
  /** The conversations that its request continued or referenced. */
  readonly loadedConversations?: readonly LoadedConversation[];
}

export class ConversationService {
  constructor(private readonly dependencies: ConversationDependencies) {}

  /**
   * Stores a response and returns whether it was stored in time. Never throws, because a store that fails or is slow
   * must not fail a paid response.
   */
  async store(response: NewResponse): Promise<boolean> {
    const { runtime } = this.dependencies;
    const saved = this.save(response).catch((error) => {
      runtime.reportError('a response was not stored', error);
      return false;
    });
    return withTimeout(runtime, STORE_TIMEOUT_MS, saved, () => false);
  }

  /** If the continued response was removed in the meantime, the complete conversation is stored instead. */
  private async save(response: NewResponse): Promise<boolean> {
    const { conversation, loadedConversations = [] } = response;
    const serialized = await serializeConversation(conversation, loadedConversations);
    try {
      return serialized !== undefined && (await this.write(response, serialized));
    } catch (error) {
      if (!(error instanceof PreviousResponseRemovedError)) throw error;
      const full = await serializeFull(conversation);
      return full !== undefined && this.write(response, full);
    }
  }

  private async write(
    { accountId, id, outputItems = [] }: NewResponse,
    serialized: SerializedConversation,
  ): Promise<boolean> {
    const { responseStore, quota, secrets, clock } = this.dependencies;
    const itemIds = outputItems.map((item) => item.id).filter(isItemId);
    const { previousId, json } = serialized;
    const expiresAt = clock.fromNow(RESPONSE_LIFETIME_MS);
    const sealed = { key: secrets.keyId, box: await secrets.sealBytes(...json) };
    const response = { id, accountId, previousId, expiresAt, sealed, itemIds };
    return responseStore.save(response, await quota.loadMaxBytes(accountId));
  }

  /** @throws InvalidRequestError (400) if the storage quota of the account is used up */
  async assertWithinQuota(accountId: string): Promise<void> {
    const problem = await this.findQuotaProblem(accountId);
    if (problem === undefined) return;
    throw new InvalidRequestError(400, `${problem}; delete responses, or send store: false`, 'store');
  }

  /** Returns a sentence without a final dot if the storage quota of the account is used up, otherwise undefined. */
  async findQuotaProblem(accountId: string): Promise<string | undefined> {
    const { responseStore, quota } = this.dependencies;
    const [used, maxBytes] = [await responseStore.getStoredBytes(accountId), await quota.loadMaxBytes(accountId)];
    return used < maxBytes ? undefined : `The account uses ${used} of ${maxBytes} bytes of its storage quota`;
  }

  /** Loads a conversation by its last response. @throws InvalidRequestError (404) if it is missing or has expired */
  async load(reader: StoredResponseReader, id: string, param: string | null = null): Promise<LoadedConversation> {
    return (isResponseId(id) ? await this.find({ by: 'id', id }, reader) : undefined) ?? throwNotFound(param);
  }

  /** Loads the thread that ends with a message of Anthropic's API. @returns undefined if it is missing or has expired */
  async findMessage(reader: StoredResponseReader, id: string): Promise<LoadedConversation | undefined> {
    return MESSAGE_ID.test(id) ? this.find({ by: 'id', id }, reader) : undefined;
  }

  /** Loads the JSON of a response as it was returned. @throws InvalidRequestError (404) like `load` */
  async loadResponse(reader: StoredResponseReader, id: string): Promise<string> {
    return (
      (isResponseId(id) ? (await this.find({ by: 'id', id, withoutPrevious: true }, reader))?.response : undefined) ??
      throwNotFound()
    );
  }

  /**
   * Replaces item references with the stored items. Clients send references if they do not retain items themselves. The
   * last reference is resolved first, because its conversation usually contains the other items too.
   * @param continued the conversation of `previous_response_id`, if any
   * @throws InvalidRequestError 404 if an item does not exist, has expired or exceeds the maximum lookups; 400 if an
   *   item is referenced twice, or the conversations are too large together
   */
  async resolveReferences(
    reader: StoredResponseReader,
    input: readonly unknown[],
    continued: readonly LoadedConversation[] = [],
  ): Promise<ResolvedInput> {
    const loadedConversations = [...continued];
    const knownItems = new Map<unknown, JsonObject>(listItemsById(continued));
    const referred = new Set<unknown>();
    let lookups = 0;
    for (const [at, item] of [...input.entries()].reverse()) {
      if (!isReference(item)) continue;
      const param = `input[${at}].id`;
      if (referred.has(item.id)) throw new InvalidRequestError(400, 'An item must not be referenced twice', param);
      referred.add(item.id);
      if (knownItems.has(item.id)) continue;
      const id = isItemId(item.id) && lookups++ < MAX_LOOKUPS ? item.id : undefined;
      const match = id && (await this.find({ by: 'item', id }, reader));
      if (match) loadedConversations.push(match);
      for (const [name, loadedItem] of listItemsById(match ? [match] : []))
        if (!knownItems.has(name)) knownItems.set(name, loadedItem);
      if (!knownItems.has(item.id))
        throw new InvalidRequestError(404, 'Item not found; responses are stored for 30 days', param);
      if (loadedConversations.reduce((sum, { length }) => sum + length, 0) > 2 * MAX_CONVERSATION_CHARACTERS)
        throw new InvalidRequestError(400, 'The conversations of the referenced items are too large together', param);
    }
    if (referred.size === 0) return { input, loadedConversations };
    return { input: input.map((item) => (isReference(item) ? knownItems.get(item.id) : item)), loadedConversations };
  }

  /**
   * Removes a response, or a message of a thread.
   * @throws InvalidRequestError (404) if the account has no such response, or it has expired
   */
  async remove(accountId: string, id: string): Promise<void> {
    const { responseStore, clock } = this.dependencies;
    if (!(isResponseId(id) || MESSAGE_ID.test(id)) || !(await responseStore.remove(accountId, id, clock.now())))
      throwNotFound();
  }

  /** A conversation that cannot be opened, for example because a master key is unknown, is treated as missing. */
  private async find(
    reference: Pick<StoredResponseRef, 'by' | 'id' | 'withoutPrevious'>,
    { accountId, reserveMemory }: StoredResponseReader,
  ): Promise<LoadedConversation | undefined> {
    const { responseStore, clock } = this.dependencies;
    const chain = await responseStore.find({ ...reference, accountId, reserveMemory, now: clock.now() });
    if (chain === undefined) return undefined;
    try {
      const { parts, length } = await this.parse(await this.open(chain.parts), accountId);
      return { id: chain.id, partCount: parts.length, length, ...joinParts(parts) };
    } catch (error) {
      this.dependencies.runtime.reportError('a stored response cannot be read', error);
      return undefined;
    }
  }

  private async open(sealedParts: readonly SealedConversation[]): Promise<readonly Buffer[]> {
    const contents: Buffer[] = [];
    const work = new WorkParts();
    for (const { key, box } of sealedParts) {
      contents.push(await this.dependencies.secrets.openBytes(box, key));
      await work.rest();
    }
    return contents;
  }

  /** Parses a long conversation when its turn comes, because its account may read it with any number of requests. */
  private async parse(
    contents: readonly Buffer[],
    accountId: string,
  ): Promise<{ readonly parts: readonly StoredPart[]; readonly length: number }> {
    const parts: StoredPart[] = [];
    let length = 0;
    const parseTexts = (texts: readonly string[]) => {
      for (const text of texts) {
        length += text.length;
        parts.push(JSON.parse(text));
      }
    };
    const steps = listBatches(contents).flatMap((batch): WorkStep[] => [() => batch.map(String), parseTexts]);
    const size = contents.reduce((sum, { byteLength }) => sum + byteLength, 0);
    if (size <= MAX_SMALL_JSON_BYTES) parseTexts(contents.map(String));
    else await this.dependencies.heavyWork.run(accountId, size, steps);
    return { parts, length };
  }
}

/** Divides the parts of a conversation into batches that are parsed at once. A batch is short, or has one part. */
function listBatches(contents: readonly Buffer[]): readonly (readonly Buffer[])[] {
  const batches: Buffer[][] = [];
  let size = Number.POSITIVE_INFINITY;
  for (const content of contents) {
    size += content.byteLength;
    if (size <= MAX_BATCH_BYTES) batches.at(-1)?.push(content);
    else {
      batches.push([content]);
      size = content.byteLength;
    }
  }
  return batches;
}

function listItemsById(conversations: readonly Conversation[]): readonly (readonly [string, JsonObject])[] {
  return conversations.flatMap(({ items }) => items.flatMap((item) => (isItemId(item.id) ? [[item.id, item]] : [])));
}

function isReference(item: unknown): item is JsonObject {
  return isJsonObject(item) && item.type === 'item_reference';
}

function isItemId(id: unknown): id is string {
  return typeof id === 'string' && id.length > 0 && id.length <= MAX_ITEM_ID_LENGTH && !id.includes('\0');
}

/** Whether an id has our format. Other ids are not looked up. */
function isResponseId(id: unknown): boolean {
  return typeof id === 'string' && RESPONSE_ID.test(id);
}

function throwNotFound(param: string | null = null): never {
  throw new InvalidRequestError(404, 'Response not found; responses are stored for 30 days', param);
}
