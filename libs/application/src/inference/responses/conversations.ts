/** Stores responses as application data, not as events, so that later requests can continue their conversations. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Instant } from '#domain';
import { isJsonObject, type JsonObject } from '#kernel';
import type { Clock } from '../../clock.ts';
import { InvalidRequestError } from '../../errors.ts';
import type { SealedSecretBox, Secrets } from '../../secrets.ts';
import type { StorageQuota } from '../../storage-quota.ts';

import { type Conversation, joinParts, type StoredPart, toStoredPart } from './stored-parts.ts';

/** The same lifetime as at OpenAI. */
const RESPONSE_LIFETIME_MS = 30 * 24 * 60 * 60_000;
/** A longer conversation, for example with large attachments, is not stored: every turn would load all of it again. */
const MAX_CONVERSATION_CHARACTERS = 32 * 1024 * 1024;
/** Maximum number of stored responses that form a conversation. Beyond it, the next response stores all items again. */
const MAX_CONVERSATION_PARTS = 1_000;
/** Maximum length of items copied from conversations other than the continued one. Beyond it, nothing is stored. */
const MAX_COPIED_CHARACTERS = 1024 * 1024;
/** How long a paid response waits to be stored. After that it is returned as not stored. */
const STORE_TIMEOUT_MS = 2_000;
/**
 * Maximum lookups per request; further references count as not found. A lookup finds all items of the conversation up
 * to the response with the referenced item.
 */
const MAX_LOOKUPS = 32;
/** Maximum length of an item id. The ids of all providers are shorter. */
const MAX_ITEM_ID_LENGTH = 256;
const RESPONSE_ID = /^resp_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export interface StoredResponse {
  readonly id: string;
  readonly accountId: string;
  /** The response that this one continues; null if this one stores its complete conversation. */
  readonly previousId: string | null;
  readonly expiresAt: Instant;
  readonly sealed: SealedSecretBox;
  /** Ids of its output items, which later requests may reference. */
  readonly itemIds: readonly string[];
}

/** A stored response and the responses that it continues. */
export interface StoredChain {
  readonly id: string;
  /** In order, starting with the first response of the conversation. */
  readonly parts: readonly SealedSecretBox[];
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

/** A stored conversation that a new response may continue. */
export interface LoadedConversation extends Conversation {
  readonly id: string;
  readonly partCount: number;
  /** Total length of its decrypted parts in characters. */
  readonly length: number;
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
  readonly clock: Clock;
  readonly reportError: (problem: string, error: unknown) => void;
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
    const storeTimeout = new AbortController();
    const { signal } = storeTimeout;
    const saved = this.save(response).catch((error) => {
      this.dependencies.reportError('a response was not stored', error);
      return false;
    });
    const isStored = await Promise.race([saved, delay(STORE_TIMEOUT_MS, false, { signal }).catch(() => false)]);
    storeTimeout.abort();
    return isStored;
  }

  /** If the continued response was removed in the meantime, the complete conversation is stored instead. */
  private async save(response: NewResponse): Promise<boolean> {
    const { conversation, loadedConversations = [] } = response;
    const serialized = serializeConversation(conversation, loadedConversations);
    try {
      return serialized !== undefined && (await this.write(response, serialized));
    } catch (error) {
      if (!(error instanceof PreviousResponseRemovedError)) throw error;
      const full = serializeFull(conversation);
      return full !== undefined && this.write(response, full);
    }
  }

  private async write(
    { accountId, id, outputItems = [] }: NewResponse,
    serialized: SerializedConversation,
  ): Promise<boolean> {
    const { responseStore, quota, secrets, clock } = this.dependencies;
    const itemIds = outputItems.map((item) => item.id).filter(isItemId);
    const { previousId, text } = serialized;
    const expiresAt = clock.fromNow(RESPONSE_LIFETIME_MS);
    const response = { id, accountId, previousId, expiresAt, sealed: secrets.seal(text), itemIds };
    return responseStore.save(response, await quota.loadMaxBytes(accountId));
  }

  /** @throws InvalidRequestError (400) if the storage quota of the account is used up */
  async assertWithinQuota(accountId: string): Promise<void> {
    const { responseStore, quota } = this.dependencies;
    const [used, maxBytes] = [await responseStore.getStoredBytes(accountId), await quota.loadMaxBytes(accountId)];
    if (used < maxBytes) return;
    const message = `The account uses ${used} of ${maxBytes} bytes of its storage quota; delete responses, or send store: false`;
    throw new InvalidRequestError(400, message, 'store');
  }

  /** Loads a conversation by its last response. @throws InvalidRequestError (404) if it is missing or has expired */
  async load(reader: StoredResponseReader, id: string, param: string | null = null): Promise<LoadedConversation> {
    return (isResponseId(id) ? await this.find({ by: 'id', id }, reader) : undefined) ?? throwNotFound(param);
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

  /** @throws InvalidRequestError (404) if the account has no such response, or it has expired */
  async remove(accountId: string, id: string): Promise<void> {
    const { responseStore, clock } = this.dependencies;
    if (!isResponseId(id) || !(await responseStore.remove(accountId, id, clock.now()))) throwNotFound();
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
      const texts = chain.parts.map((part) => this.dependencies.secrets.open(part));
      const length = texts.reduce((sum, text) => sum + text.length, 0);
      const parts = texts.map((text) => JSON.parse(text) as StoredPart);
      return { id: chain.id, partCount: parts.length, length, ...joinParts(parts) };
    } catch {
      return undefined;
    }
  }
}

/**
 * Serialises the new items of a conversation, and ranges of the continued items. Serialises all items if no
 * conversation is continued, or if the parts would be too many or too long.
 * @returns undefined if the conversation, or what it copies from other conversations, is too long to be stored
 */
function serializeConversation(
  conversation: Conversation,
  [before, ...otherConversations]: readonly LoadedConversation[],
): SerializedConversation | undefined {
  const otherItems = new Set(otherConversations.flatMap(({ items }) => items));
  const copied = conversation.items.filter((item) => otherItems.has(item));
  if (copied.length > 0 && JSON.stringify(copied).length > MAX_COPIED_CHARACTERS) return undefined;
  if (before && before.partCount < MAX_CONVERSATION_PARTS) {
    const text = JSON.stringify(toStoredPart(conversation, before.items));
    if (before.length + text.length <= MAX_CONVERSATION_CHARACTERS) return { previousId: before.id, text };
  }
  return serializeFull(conversation);
}

function serializeFull(conversation: Conversation): SerializedConversation | undefined {
  const text = JSON.stringify(conversation);
  return text.length > MAX_CONVERSATION_CHARACTERS ? undefined : { previousId: null, text };
}

interface SerializedConversation {
  readonly previousId: string | null;
  readonly text: string;
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
