/** Responses that are kept, so that a later request can continue from one. They are a cache of conversations, not facts. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Instant } from '#domain';
import { Clock } from '../../clock.ts';
import { UnservableRequest } from '../../failures.ts';
import { type Sealed, Secrets } from '../../secrets.ts';
import { isObject, type Thing } from '../vocabulary/things.ts';

/** As long as OpenAI keeps them. */
const KEPT_FOR_MS = 30 * 24 * 60 * 60_000;
/** A conversation that has grown beyond this, by its attachments, is not kept: every turn would write all of it again. */
const MAX_LENGTH = 32 * 1024 * 1024;
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
  readonly expiresAt: Instant;
  readonly sealed: Sealed;
  /** Of what it answered: they may be referred to. */
  readonly itemIds: readonly string[];
}

/** The store of sealed responses. Expired ones are not found. */
export abstract class StoredResponses {
  abstract save(response: StoredResponse): Promise<void>;
  abstract find(accountId: string, id: string, now: Instant): Promise<Sealed | undefined>;
  /** The response that an item was answered with. */
  abstract findByItem(accountId: string, itemId: string, now: Instant): Promise<Sealed | undefined>;
  /** Whether there was one. */
  abstract remove(accountId: string, id: string, now: Instant): Promise<boolean>;
  abstract removeExpired(now: Instant): Promise<void>;
}

/** A response and all that was said up to it, itself included. */
export interface Conversation {
  /** Of all inputs and outputs, from any endpoint: a chat is made of them for endpoints that only speak chat. */
  readonly items: readonly Thing[];
  /** The response as it was answered: JSON, whose numbers are not to be read and written again. */
  readonly response: string;
}

export class Conversations {
  constructor(
    private readonly stored: StoredResponses,
    private readonly secrets: Secrets,
    private readonly clock: Clock,
    private readonly alarm: (problem: string, error: unknown) => void,
  ) {}

  /**
   * Stores a response; returns whether that succeeded. Never throws: a store that fails or is slow must not fail an answer.
   * @param answered those of its items that can be referred to by their ids
   */
  async keep(
    accountId: string,
    id: string,
    conversation: Conversation,
    answered: readonly Thing[] = [],
  ): Promise<boolean> {
    const text = JSON.stringify(conversation);
    if (text.length > MAX_LENGTH) return false;
    const expiresAt = this.clock.in(KEPT_FOR_MS);
    const waited = new AbortController();
    const { signal } = waited;
    const itemIds = answered.map((item) => item.id).filter(isItemId);
    const saved = this.stored.save({ id, accountId, expiresAt, sealed: this.secrets.seal(text), itemIds }).then(
      () => true,
      (error) => {
        this.alarm('a response was not stored', error);
        return false;
      },
    );
    const kept = await Promise.race([saved, delay(KEEP_WITHIN_MS, false, { signal }).catch(() => false)]);
    waited.abort();
    return kept;
  }

  /** @throws UnservableRequest when the account has no such response, or it has expired */
  async recall(accountId: string, id: string, param: string | null = null): Promise<Conversation> {
    const sealed = isId(id) ? await this.stored.find(accountId, id, this.clock.now()) : undefined;
    const text = sealed && this.opened(sealed);
    if (text === undefined) throw notFound(param);
    return JSON.parse(text) as Conversation;
  }

  /**
   * Input with the items that it only refers to, as clients do that leave it to the service to remember them. The last
   * one comes first: it was said after the others, which are kept with it.
   * @throws UnservableRequest when the account has no such item, or it has expired
   */
  async resolved(accountId: string, input: readonly unknown[]): Promise<readonly unknown[]> {
    const known = new Map<unknown, Thing>();
    let lookups = 0;
    for (const [at, item] of [...input.entries()].reverse()) {
      if (!isReference(item) || known.has(item.id)) continue;
      const param = `input[${at}].id`;
      const id = isItemId(item.id) && lookups++ < MAX_LOOKUPS ? item.id : undefined;
      const sealed = id && (await this.stored.findByItem(accountId, id, this.clock.now()));
      const text = sealed && this.opened(sealed);
      for (const each of text ? (JSON.parse(text) as Conversation).items : [])
        if (isItemId(each.id)) known.set(each.id, each);
      if (!known.has(item.id)) {
        throw new UnservableRequest(404, 'There is no such item; responses are kept for 30 days', param);
      }
    }
    return known.size === 0 ? input : input.map((item) => (isReference(item) ? known.get(item.id) : item));
  }

  /** @throws UnservableRequest when the account has no such response, or it has expired */
  async forget(accountId: string, id: string): Promise<void> {
    if (!isId(id) || !(await this.stored.remove(accountId, id, this.clock.now()))) throw notFound();
  }

  /** What was sealed with another master key counts as missing. */
  private opened(sealed: Sealed): string | undefined {
    try {
      return this.secrets.open(sealed);
    } catch {
      return undefined;
    }
  }
}

/** An item that stands for another one. */
function isReference(item: unknown): item is Thing {
  return isObject(item) && item.type === 'item_reference';
}

function isItemId(id: unknown): id is string {
  return typeof id === 'string' && id.length > 0 && id.length <= MAX_ITEM_ID && !id.includes('\0');
}

/** Nothing else is looked for. */
function isId(id: unknown): boolean {
  return typeof id === 'string' && RESPONSE_ID.test(id);
}

function notFound(param: string | null = null): UnservableRequest {
  return new UnservableRequest(404, 'There is no such response; they are kept for 30 days', param);
}
