/**
 * A Nostr relay over WebSockets, with simulated failures. Ephemeral events are forwarded to subscribers and not stored
 * (NIP-01), as on the relays that wallets use.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type Event, EventRepository, type Filter } from '@nostr-relay/common';
import { NostrRelay } from '@nostr-relay/core';
import { Validator } from '@nostr-relay/validator';
import { WebSocket, WebSocketServer } from 'ws';

const MAX_MESSAGE_BYTES = 256 * 1024;
const MAX_QUERY_RESULTS = 500;

/** What the relay does with an event of a client. */
export type EventDisposition = 'passes' | 'is lost with its connection' | 'passes, and its connection is lost';

export interface RelayCallbacks {
  /** Called for each event of a client before the relay handles the event. */
  decideDisposition?(event: Event): EventDisposition;
}

export class NostrRelayServer {
  private readonly server = new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE_BYTES });
  private readonly relay = new NostrRelay(new MemoryEventRepository(), { logger: NOOP_LOGGER });
  private readonly validator = new Validator();
  /** The subscription ids of each client. */
  private readonly subscriptions = new Map<WebSocket, Set<string>>();

  constructor(private readonly callbacks: RelayCallbacks = {}) {}

  /** Upgrades a connection to a WebSocket. */
  accept(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.server.handleUpgrade(request, socket, head, (client) => this.serve(client));
  }

  /** Sends an event to every subscription of every client, regardless of the filters. */
  broadcast(event: Event): void {
    for (const [client, subscriptionIds] of this.subscriptions)
      for (const name of subscriptionIds) client.send(JSON.stringify(['EVENT', name, event]));
  }

  async close(): Promise<void> {
    for (const client of this.server.clients) client.terminate();
    this.server.close();
    await this.relay.destroy();
  }

  private serve(client: WebSocket): void {
    const subscriptionIds = new Set<string>();
    this.subscriptions.set(client, subscriptionIds);
    this.relay.handleConnection(client, '127.0.0.1');
    client.on('message', (data: Buffer) => void this.receive(client, data, subscriptionIds));
    client.on('close', () => {
      this.subscriptions.delete(client);
      this.relay.handleDisconnect(client);
    });
    client.on('error', () => {}); // a close event follows
  }

  private async receive(client: WebSocket, data: Buffer, subscriptionIds: Set<string>): Promise<void> {
    try {
      const message = await this.validator.validateIncomingMessage(data);
      if (message[0] === 'REQ') subscriptionIds.add(message[1]);
      if (message[0] === 'CLOSE') subscriptionIds.delete(message[1]);
      const disposition =
        message[0] === 'EVENT' ? (this.callbacks.decideDisposition?.(message[1]) ?? 'passes') : 'passes';
      if (disposition !== 'is lost with its connection') await this.relay.handleMessage(client, message);
      if (disposition !== 'passes') client.terminate();
    } catch (error) {
      if (client.readyState === WebSocket.OPEN) client.send(JSON.stringify(['NOTICE', (error as Error).message]));
    }
  }
}

const NOOP_LOGGER = { setLogLevel() {}, log() {}, debug() {}, info() {}, warn() {}, error() {} };

/**
 * Stores events in memory. Of the replaceable events of one kind and author, such as a wallet's info events, only the
 * newest one is stored.
 */
class MemoryEventRepository extends EventRepository {
  private readonly events = new Map<string, Event>();

  isSearchSupported(): boolean {
    return false;
  }

  upsert(event: Event): { isDuplicate: boolean } {
    if (this.events.has(event.id)) return { isDuplicate: true };
    const { kind } = event;
    const isReplaceable = kind === 0 || kind === 3 || (kind >= 10_000 && kind < 20_000);
    if (isReplaceable) {
      for (const [id, existing] of this.events) {
        if (existing.kind !== kind || existing.pubkey !== event.pubkey) continue;
        if (existing.created_at > event.created_at) return { isDuplicate: true };
        this.events.delete(id);
      }
    }
    this.events.set(event.id, event);
    return { isDuplicate: false };
  }

  find(filter: Filter): Event[] {
    const matching = [...this.events.values()].filter((event) => matchesFilter(event, filter));
    return matching.toSorted((a, b) => b.created_at - a.created_at).slice(0, filter.limit ?? MAX_QUERY_RESULTS);
  }

  async destroy(): Promise<void> {}
}

function matchesFilter(event: Event, { ids, authors, kinds, since, until, ...tags }: Filter): boolean {
  if (ids && !ids.includes(event.id)) return false;
  if (authors && !authors.includes(event.pubkey)) return false;
  if (kinds && !kinds.includes(event.kind)) return false;
  if ((since !== undefined && event.created_at < since) || (until !== undefined && event.created_at > until))
    return false;
  return Object.entries(tags).every(([name, allowedValues]) => {
    if (!name.startsWith('#') || !Array.isArray(allowedValues)) return true;
    return event.tags.some(([tag, value]) => tag === name[1] && allowedValues.some((allowed) => allowed === value));
  });
}
