/**
 * Threads: conversations that the gateway stores, so that a request sends only its new messages. Source: the types and
 * errors of Anthropic's SDK 1.11 (`BetaMessageThreadParam`, `lib/threads`). Unlike at Anthropic, a thread can be
 * continued several times from the same message; every continuation has its own id.
 */
import { isDeepStrictEqual } from 'node:util';
import { isJsonObject, type JsonObject } from '#kernel';
import type { CatalogueService } from '../../catalogue-service.ts';
import { InvalidRequestError, invalidRequest } from '../../errors.ts';
import { forbidsRetention } from '../../routing/data-retention.ts';
import { selectModels } from '../../routing/model-list.ts';
import { resolveModel } from '../../routing/preferences.ts';
import type { ConversationService, StoredResponseReader } from '../responses/conversations.ts';
import type { LoadedConversation } from '../responses/stored-parts.ts';
import type { MessagesBody } from './body.ts';

/** A thread takes these fields from its first request. */
const CREATION_FIELDS = ['system', 'tools'] as const;
const PREVIOUS_ID = 'thread.previous_message_id';

export class MessageThread {
  constructor(
    private readonly conversations: ConversationService,
    private readonly accountId: string,
    /** With all messages of the thread, and without `thread`. */
    readonly body: MessagesBody,
    private readonly loaded: LoadedConversation | undefined,
  ) {}

  /**
   * Tries to store the conversation with a new message. If it is not stored in time, a request that continues it gets
   * `thread_not_found`, and the client sends the complete conversation.
   */
  async store(id: string, content: readonly object[]): Promise<void> {
    const { conversations, accountId, body, loaded } = this;
    // A turn without content is invalid in a later request.
    const reply = content.length > 0 ? [{ role: 'assistant', content }] : [];
    const settings = loaded?.items[0] ?? { system: body.system, tools: body.tools };
    const items = [settings, ...(body.messages as readonly JsonObject[]), ...reply];
    const loadedConversations = loaded ? [loaded] : [];
    await conversations.store({ accountId, id, conversation: { items, response: '' }, loadedConversations });
  }
}

export class ThreadLoader {
  constructor(
    private readonly catalogues: CatalogueService,
    private readonly conversations: ConversationService,
  ) {}

  /**
   * Starts or continues the thread of a request.
   * @returns undefined if the request has no thread
   * @throws InvalidRequestError with the codes of Anthropic: 404 `thread_not_found` if the message is missing or has
   *   expired; 400 `thread_fingerprint_mismatch` if the request changes `system` or `tools`; 400
   *   `thread_unsupported_request` if nothing may be stored, after which clients send complete conversations
   */
  async load(reader: StoredResponseReader, { thread, ...body }: MessagesBody): Promise<MessageThread | undefined> {
    if (thread === undefined || thread === null) return undefined;
    const { conversations } = this;
    const { accountId } = reader;
    const { type, previous_message_id: previousId } = isJsonObject(thread) ? thread : {};
    if (type !== 'create' && type !== 'continue')
      throw invalidRequest('thread.type must be "create" or "continue"', 'thread.type');
    await this.assertStorable(accountId, body);
    if (type === 'create') return new MessageThread(conversations, accountId, body, undefined);
    if (typeof previousId !== 'string') throw invalidRequest(`${PREVIOUS_ID} must be a string`, PREVIOUS_ID);
    const loaded = await conversations.findMessage(reader, previousId);
    const [settings, ...messages] = loaded?.items ?? [];
    if (!settings) {
      const message = 'Thread not found; threads are stored for 30 days. Send the complete conversation';
      throw new InvalidRequestError(404, message, PREVIOUS_ID, { code: 'thread_not_found' });
    }
    assertUnchanged(body, settings);
    const completeBody = { ...body, ...settings, messages: [...messages, ...body.messages] };
    return new MessageThread(conversations, accountId, completeBody, loaded);
  }

  /** Clients request threads by themselves, so a model with zero data retention excludes them like the caller does. */
  private async assertStorable(accountId: string, body: MessagesBody): Promise<void> {
    const models = selectModels(body, (name) => resolveModel(name, this.catalogues.current).model);
    if (forbidsRetention(body) || models.some(({ privacy }) => privacy === 'zdr'))
      throw createUnsupportedError('A thread is stored, which the data policy of the request or model does not permit');
    const problem = await this.conversations.findQuotaProblem(accountId);
    if (problem !== undefined)
      throw createUnsupportedError(`${problem}; send the complete conversation without thread`);
  }
}

function createUnsupportedError(message: string): InvalidRequestError {
  return new InvalidRequestError(400, message, 'thread', { code: 'thread_unsupported_request' });
}

function assertUnchanged(body: JsonObject, settings: JsonObject): void {
  for (const field of CREATION_FIELDS) {
    const value = body[field];
    if (value === undefined || value === null || isDeepStrictEqual(value, settings[field])) continue;
    const message = `${field} must be the same as in the first request of the thread, or be omitted`;
    throw new InvalidRequestError(400, message, field, { code: 'thread_fingerprint_mismatch' });
  }
}
