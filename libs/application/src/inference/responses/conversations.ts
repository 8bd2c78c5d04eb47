/** Responses that are kept, so that a later request can continue from one. They are a cache of conversations, not facts. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Instant } from '#domain';
import type { Clock } from '../../clock.ts';
import { InvalidRequestError } from '../../errors.ts';
import type { SealedSecretBox, Secrets } from '../../secrets.ts';
import type { StorageQuota } from '../../storage-quota.ts';
import { isJsonObject, type JsonObject } from '../../wire/json-object.ts';
import { type Conversation, joinParts, type StoredPart, toStoredPart } from './stored-parts.ts';

/** As long as OpenAI keeps them. */
const KEPT_FOR_MS = 30 * 24 * 60 * 60_000;
/** A conversation that has grown beyond this, by its attachments, is not kept: every turn would read all of it again. */
const MAX_LENGTH = 32 * 1024 * 1024;
/** Responses that one is put together from at most: the next one is written whole. */
const MAX_PARTS = 1_000;
/** Of other conversations than the one that is continued: what was said there is written again. */
const MAX_COPIED = 1024 * 1024;
/** The longest that a paid answer waits to be stored. */
const KEEP_WITHIN_MS = 2_000;
/** Each look-up finds the conversation up to an item: continuing one conversation takes one. */
const MAX_LOOKUPS = 32;
/** Longer than any id that an upstream gives. */
const MAX_ITEM_ID = 256;
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
  take(bytes: number): Promise<void>;
}

/** What is looked for: a response, or that which an item was answered with. */
export interface StoredResponseRef extends StoredResponseReader {
  readonly by: 'id' | 'item';
  readonly id: string;
  readonly now: Instant;
  /** The response itself is enough, without those that it goes on from. */
  readonly alone?: boolean;
}

/** What a response goes on from was removed while it was answered. */
export class PreviousResponseRemovedError extends Error {}

/** The store of sealed responses. Expired ones are not found, but stay for as long as others go on from them. */
export abstract class ResponseStore {
  /** @returns false where the account would have more than `atMost` bytes @throws PreviousResponseRemovedError */
  abstract save(response: StoredResponse, atMost: number): Promise<boolean>;
  abstract find(wanted: StoredResponseRef): Promise<StoredChain | undefined>;
  /** Whether there was one. */
  abstract remove(accountId: string, id: string, now: Instant): Promise<boolean>;
  abstract removeExpired(now: Instant): Promise<void>;
  /** Bytes that are stored for an account. */
  abstract stored(accountId: string): Promise<number>;
}

/** A stored conversation, which another response may go on from. */
export interface LoadedConversation extends Conversation {
  readonly id: string;
  readonly parts: number;
  /** Of all its parts as they are stored, in characters. */
  readonly length: number;
}

/** Input without references, and the conversations that these led to: the first is the one that it continues. */
export interface ResolvedInput {
  readonly input: readonly unknown[];
  readonly recalled: readonly LoadedConversation[];
}

export interface ConversationDependencies {
  readonly stored: ResponseStore;
  readonly room: StorageQuota;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly alarm: (problem: string, error: unknown) => void;
}

/** A response that is to be kept. */
export interface NewResponse {
  readonly accountId: string;
  readonly id: string;
  readonly conversation: Conversation;
  /** Those of its items that can be referred to by their ids. */
  readonly answered?: readonly JsonObject[];
  /** What its request went on from. */
  readonly recalled?: readonly LoadedConversation[];
}

export class ConversationService {
  constructor(private readonly ports: ConversationDependencies) {}

  /** Stores a response; returns whether that succeeded. Never throws: a store that fails or is slow must not fail an answer. */
  async keep(response: NewResponse): Promise<boolean> {
    const waited = new AbortController();
    const { signal } = waited;
    const saved = this.save(response).catch((error) => {
      this.ports.alarm('a response was not stored', error);
      return false;
    });
    const kept = await Promise.race([saved, delay(KEEP_WITHIN_MS, false, { signal }).catch(() => false)]);
    waited.abort();
    return kept;
  }

  /** What was removed while it was read is part of this conversation, which then stands alone. */
  private async save(response: NewResponse): Promise<boolean> {
    const { conversation, recalled = [] } = response;
    const written = writtenFrom(conversation, recalled);
    try {
      return written !== undefined && (await this.write(response, written));
    } catch (error) {
      if (!(error instanceof PreviousResponseRemovedError)) throw error;
      const whole = wholeOf(conversation);
      return whole !== undefined && this.write(response, whole);
    }
  }

  private async write({ accountId, id, answered = [] }: NewResponse, written: Written): Promise<boolean> {
    const { stored, room, secrets, clock } = this.ports;
    const itemIds = answered.map((item) => item.id).filter(isItemId);
    const { previousId, text } = written;
    const expiresAt = clock.in(KEPT_FOR_MS);
    const response = { id, accountId, previousId, expiresAt, sealed: secrets.seal(text), itemIds };
    return stored.save(response, await room.of(accountId));
  }

  /** @throws InvalidRequestError where nothing more may be stored for the account, and its request wants to be */
  async assertRoom(accountId: string): Promise<void> {
    const { stored, room } = this.ports;
    const [used, most] = [await stored.stored(accountId), await room.of(accountId)];
    if (used < most) return;
    const message = `Nothing more is stored for this account, which has ${used} bytes of ${most}: delete responses, or send store: false`;
    throw new InvalidRequestError(400, message, 'store');
  }

  /** @throws InvalidRequestError when the account has no such response, or it has expired */
  async recall(reader: StoredResponseReader, id: string, param: string | null = null): Promise<LoadedConversation> {
    return (isId(id) ? await this.found({ by: 'id', id }, reader) : undefined) ?? notFound(param);
  }

  /** A response as it was answered. @throws InvalidRequestError as above */
  async response(reader: StoredResponseReader, id: string): Promise<string> {
    return (isId(id) ? (await this.found({ by: 'id', id, alone: true }, reader))?.response : undefined) ?? notFound();
  }

  /**
   * Input with the items that it only refers to, as clients do that leave it to the service to remember them. The last
   * one comes first: it was said after the others, which are kept with it.
   * @param continued the conversation that the request continues anyway
   * @throws InvalidRequestError when the account has no such item, or it has expired, or all of them together are too much
   */
  async resolved(
    reader: StoredResponseReader,
    input: readonly unknown[],
    continued: readonly LoadedConversation[] = [],
  ): Promise<ResolvedInput> {
    const recalled = [...continued];
    const known = new Map<unknown, JsonObject>(itemsById(continued));
    const referred = new Set<unknown>();
    let lookups = 0;
    for (const [at, item] of [...input.entries()].reverse()) {
      if (!isReference(item)) continue;
      const param = `input[${at}].id`;
      if (referred.has(item.id)) throw new InvalidRequestError(400, 'An item is referred to twice', param);
      referred.add(item.id);
      if (known.has(item.id)) continue;
      const id = isItemId(item.id) && lookups++ < MAX_LOOKUPS ? item.id : undefined;
      const found = id && (await this.found({ by: 'item', id }, reader));
      if (found) recalled.push(found);
      for (const [name, each] of itemsById(found ? [found] : [])) if (!known.has(name)) known.set(name, each);
      if (!known.has(item.id))
        throw new InvalidRequestError(404, 'There is no such item; responses are kept for 30 days', param);
      if (recalled.reduce((sum, { length }) => sum + length, 0) > 2 * MAX_LENGTH)
        throw new InvalidRequestError(400, 'What the items refer to is too much together', param);
    }
    if (referred.size === 0) return { input, recalled };
    return { input: input.map((item) => (isReference(item) ? known.get(item.id) : item)), recalled };
  }

  /** @throws InvalidRequestError when the account has no such response, or it has expired */
  async forget(accountId: string, id: string): Promise<void> {
    const { stored, clock } = this.ports;
    if (!isId(id) || !(await stored.remove(accountId, id, clock.now()))) notFound();
  }

  /** What was sealed with another master key counts as missing. */
  private async found(
    wanted: Pick<StoredResponseRef, 'by' | 'id' | 'alone'>,
    { accountId, take }: StoredResponseReader,
  ): Promise<LoadedConversation | undefined> {
    const { stored, clock } = this.ports;
    const chain = await stored.find({ ...wanted, accountId, take, now: clock.now() });
    if (chain === undefined) return undefined;
    try {
      const texts = chain.parts.map((part) => this.ports.secrets.open(part));
      const length = texts.reduce((sum, text) => sum + text.length, 0);
      const parts = texts.map((text) => JSON.parse(text) as StoredPart);
      return { id: chain.id, parts: parts.length, length, ...joinParts(parts) };
    } catch {
      return undefined;
    }
  }
}

/**
 * What is written of a conversation: what is new beside the one that it goes on from, or all of it where that would be put
 * together from too much. Undefined where it is too long to be kept.
 */
function writtenFrom(
  conversation: Conversation,
  [before, ...others]: readonly LoadedConversation[],
): Written | undefined {
  const elsewhere = new Set(others.flatMap(({ items }) => items));
  const copied = conversation.items.filter((item) => elsewhere.has(item));
  if (copied.length > 0 && JSON.stringify(copied).length > MAX_COPIED) return undefined;
  if (before && before.parts < MAX_PARTS) {
    const text = JSON.stringify(toStoredPart(conversation, before.items));
    if (before.length + text.length <= MAX_LENGTH) return { previousId: before.id, text };
  }
  return wholeOf(conversation);
}

function wholeOf(conversation: Conversation): Written | undefined {
  const text = JSON.stringify(conversation);
  return text.length > MAX_LENGTH ? undefined : { previousId: null, text };
}

interface Written {
  readonly previousId: string | null;
  readonly text: string;
}

function itemsById(conversations: readonly Conversation[]): readonly (readonly [string, JsonObject])[] {
  return conversations.flatMap(({ items }) => items.flatMap((item) => (isItemId(item.id) ? [[item.id, item]] : [])));
}

/** An item that stands for another one. */
function isReference(item: unknown): item is JsonObject {
  return isJsonObject(item) && item.type === 'item_reference';
}

function isItemId(id: unknown): id is string {
  return typeof id === 'string' && id.length > 0 && id.length <= MAX_ITEM_ID && !id.includes('\0');
}

/** Nothing else is looked for. */
function isId(id: unknown): boolean {
  return typeof id === 'string' && RESPONSE_ID.test(id);
}

function notFound(param: string | null = null): never {
  throw new InvalidRequestError(404, 'There is no such response; they are kept for 30 days', param);
}
