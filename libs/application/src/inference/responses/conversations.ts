/** Responses that are kept, so that a later request can continue from one. They are a cache of conversations, not facts. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Instant } from '#domain';
import { isJsonObject, type JsonObject } from '#kernel';
import type { Clock } from '../../clock.ts';
import { InvalidRequestError } from '../../errors.ts';
import type { SealedSecretBox, Secrets } from '../../secrets.ts';
import type { StorageQuota } from '../../storage-quota.ts';

import { type Conversation, joinParts, type StoredPart, toStoredPart } from './stored-parts.ts';

/** As long as OpenAI keeps them. */
const RESPONSE_LIFETIME_MS = 30 * 24 * 60 * 60_000;
/** A conversation that has grown beyond this, by its attachments, is not kept: every turn would read all of it again. */
const MAX_CONVERSATION_CHARACTERS = 32 * 1024 * 1024;
/** Responses that one is put together from at most: the next one is written whole. */
const MAX_CONVERSATION_PARTS = 1_000;
/** Of other conversations than the one that is continued: what was said there is written again. */
const MAX_COPIED_CHARACTERS = 1024 * 1024;
/** The longest that a paid answer waits to be stored. */
const STORE_TIMEOUT_MS = 2_000;
/** Each look-up finds the conversation up to an item: continuing one conversation takes one. */
const MAX_LOOKUPS = 32;
/** Longer than any id that an upstream gives. */
const MAX_ITEM_ID_LENGTH = 256;
const RESPONSE_ID = /^resp_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export interface StoredResponse {
  readonly id: string;
  readonly accountId: string;
  /** The response that it goes on from, whose conversation is needed to put its own together. */
  readonly previousId: string | null;
  readonly expiresAt: Instant;
  readonly sealed: SealedSecretBox;
  /** Of what it answered: they may be referred to. */
  readonly itemIds: readonly string[];
}

/** A stored response, and those that it goes on from. */
export interface StoredChain {
  readonly id: string;
  /** From the first one on. */
  readonly parts: readonly SealedSecretBox[];
}

/** Who reads what is stored for an account. */
export interface StoredResponseReader {
  readonly accountId: string;
  /** Takes so many bytes of the memory that there is for requests, before they are read. @throws Error where there is none */
  reserveMemory(bytes: number): Promise<void>;
}

/** What is looked for: a response, or that which an item was answered with. */
export interface StoredResponseRef extends StoredResponseReader {
  readonly by: 'id' | 'item';
  readonly id: string;
  readonly now: Instant;
  /** The response itself is enough, without those that it goes on from. */
  readonly withoutPrevious?: boolean;
}

/** What a response goes on from was removed while it was answered. */
export class PreviousResponseRemovedError extends Error {}

/** The store of sealed responses. Expired ones are not found, but stay for as long as others go on from them. */
export abstract class ResponseStore {
  /** @returns false where the account would have more than `maxBytes` bytes @throws PreviousResponseRemovedError */
  abstract save(response: StoredResponse, maxBytes: number): Promise<boolean>;
  abstract find(reference: StoredResponseRef): Promise<StoredChain | undefined>;
  /** Whether there was one. */
  abstract remove(accountId: string, id: string, now: Instant): Promise<boolean>;
  abstract removeExpired(now: Instant): Promise<void>;
  /** Bytes that are stored for an account. */
  abstract getStoredBytes(accountId: string): Promise<number>;
}

/** A stored conversation, which another response may go on from. */
export interface LoadedConversation extends Conversation {
  readonly id: string;
  readonly partCount: number;
  /** Of all its parts as they are stored, in characters. */
  readonly length: number;
}

/** Input without references, and the conversations that these led to: the first is the one that it continues. */
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

/** A response that is to be kept. */
export interface NewResponse {
  readonly accountId: string;
  readonly id: string;
  readonly conversation: Conversation;
  /** Those of its items that can be referred to by their ids. */
  readonly outputItems?: readonly JsonObject[];
  /** What its request went on from. */
  readonly loadedConversations?: readonly LoadedConversation[];
}

export class ConversationService {
  constructor(private readonly dependencies: ConversationDependencies) {}

  /** Stores a response; returns whether that succeeded. Never throws: a store that fails or is slow must not fail an answer. */
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

  /** What was removed while it was read is part of this conversation, which then stands alone. */
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

  /** @throws InvalidRequestError where nothing more may be stored for the account, and its request wants to be */
  async assertWithinQuota(accountId: string): Promise<void> {
    const { responseStore, quota } = this.dependencies;
    const [used, maxBytes] = [await responseStore.getStoredBytes(accountId), await quota.loadMaxBytes(accountId)];
    if (used < maxBytes) return;
    const message = `Nothing more is stored for this account, which has ${used} bytes of ${maxBytes}: delete responses, or send store: false`;
    throw new InvalidRequestError(400, message, 'store');
  }

  /** @throws InvalidRequestError when the account has no such response, or it has expired */
  async load(reader: StoredResponseReader, id: string, param: string | null = null): Promise<LoadedConversation> {
    return (isResponseId(id) ? await this.find({ by: 'id', id }, reader) : undefined) ?? throwNotFound(param);
  }

  /** A response as it was answered. @throws InvalidRequestError as above */
  async loadResponse(reader: StoredResponseReader, id: string): Promise<string> {
    return (
      (isResponseId(id) ? (await this.find({ by: 'id', id, withoutPrevious: true }, reader))?.response : undefined) ??
      throwNotFound()
    );
  }

  /**
   * Input with the items that it only refers to, as clients do that leave it to the service to remember them. The last
   * one comes first: it was said after the others, which are kept with it.
   * @param continued the conversation that the request continues anyway
   * @throws InvalidRequestError when the account has no such item, or it has expired, or all of them together are too much
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
      if (referred.has(item.id)) throw new InvalidRequestError(400, 'An item is referred to twice', param);
      referred.add(item.id);
      if (knownItems.has(item.id)) continue;
      const id = isItemId(item.id) && lookups++ < MAX_LOOKUPS ? item.id : undefined;
      const match = id && (await this.find({ by: 'item', id }, reader));
      if (match) loadedConversations.push(match);
      for (const [name, loadedItem] of listItemsById(match ? [match] : []))
        if (!knownItems.has(name)) knownItems.set(name, loadedItem);
      if (!knownItems.has(item.id))
        throw new InvalidRequestError(404, 'There is no such item; responses are kept for 30 days', param);
      if (loadedConversations.reduce((sum, { length }) => sum + length, 0) > 2 * MAX_CONVERSATION_CHARACTERS)
        throw new InvalidRequestError(400, 'What the items refer to is too much together', param);
    }
    if (referred.size === 0) return { input, loadedConversations };
    return { input: input.map((item) => (isReference(item) ? knownItems.get(item.id) : item)), loadedConversations };
  }

  /** @throws InvalidRequestError when the account has no such response, or it has expired */
  async remove(accountId: string, id: string): Promise<void> {
    const { responseStore, clock } = this.dependencies;
    if (!isResponseId(id) || !(await responseStore.remove(accountId, id, clock.now()))) throwNotFound();
  }

  /** What was sealed with another master key counts as missing. */
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
 * What is written of a conversation: what is new beside the one that it goes on from, or all of it where that would be put
 * together from too much. Undefined where it is too long to be kept.
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

/** An item that stands for another one. */
function isReference(item: unknown): item is JsonObject {
  return isJsonObject(item) && item.type === 'item_reference';
}

function isItemId(id: unknown): id is string {
  return typeof id === 'string' && id.length > 0 && id.length <= MAX_ITEM_ID_LENGTH && !id.includes('\0');
}

/** Nothing else is looked for. */
function isResponseId(id: unknown): boolean {
  return typeof id === 'string' && RESPONSE_ID.test(id);
}

function throwNotFound(param: string | null = null): never {
  throw new InvalidRequestError(404, 'There is no such response; they are kept for 30 days', param);
}
