import { randomUUID } from 'node:crypto';
import { setTimeout as delay, setImmediate as immediate } from 'node:timers/promises';
import gossipServices from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import gossip from '@eventstore/db-client/generated/gossip_pb.js';
import featureServices from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import features from '@eventstore/db-client/generated/serverfeatures_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import streamServices from '@eventstore/db-client/generated/streams_grpc_pb.js';
import userServices from '@eventstore/db-client/generated/users_grpc_pb.js';
import { type Metadata, Server, ServerCredentials, type sendUnaryData } from '@grpc/grpc-js';
import { type AppendEvents, createAppendHandler, createBatchAppendHandler } from './appends.ts';
import { Journal } from './journal.ts';
import { type AppendResult, EventLog, type ProposedEvent } from './log.ts';
import { type OnReadEvent, read } from './reads.ts';
import { Users } from './users.ts';
import {
  accessDeniedError,
  commitTimeoutError,
  decodeStreamName,
  notLeaderError,
  notReadyError,
  unknownUserError,
  unsupportedMethodError,
} from './wire.ts';

const HOST = '127.0.0.1';
const MAX_APPEND_BYTES = 1024 * 1024;
const MAX_MESSAGE_BYTES = 17 * 1024 * 1024;
/** Timeout of the server for an append that is not committed; 2 s on a real server. */
const COMMIT_TIMEOUT_MS = 50;
const METHODS = ['read', 'append', 'batchappend'];

/** Certificate and key in PEM. */
interface Certificate {
  readonly cert: string;
  readonly key: string;
}

export interface FakeEventStoreDbOptions {
  /** Enables TLS. */
  readonly certificate?: Certificate;
  /** A free port by default. */
  readonly port?: number;
  /** File that stores the appended events. Without it they are lost at the end of the process. */
  readonly journal?: string;
}

/**
 * An EventStoreDB node for tests, which the real client calls over real gRPC. It stores everything in memory and, if a
 * file is given, in a journal. It fails on demand. Calls that the adapter does not use are mostly not supported.
 */
export class FakeEventStoreDb {
  /**
   * Counters of the server. `read`, `subscribe` and `gossip` count calls. `append` and `batchAppend` count appends that
   * the log has handled. `pages` counts forward pages of `$all`, and `entries` the entries in them. `caughtUp` and
   * `dropped` count subscriptions. `open` is the number of reads and subscriptions that are open now.
   */
  readonly stats = {
    read: 0,
    pages: 0,
    entries: 0,
    subscribe: 0,
    append: 0,
    batchAppend: 0,
    gossip: 0,
    caughtUp: 0,
    dropped: 0,
    open: 0,
  };
  private readonly log: EventLog;
  port: number;
  /** Users of a server with TLS. Without TLS everyone may read and append, as on a real server. */
  readonly users: Users;
  private server: Server | undefined;
  private restarted: Promise<void> = Promise.resolve();
  private isNotReady = false;
  private leader: FakeEventStoreDb | undefined;
  private advertisedLeader: string | undefined;
  private denied: Parameters<FakeEventStoreDb['deny']>[0];
  private losesNextResponse = false;
  private heldResponses: Promise<void> | undefined;
  /** Appends that are not committed yet, by the ids of their first events. */
  private readonly committing = new Set<string>();
  private readonly waiting = new Set<() => void>();

  private readonly certificate: Certificate | undefined;

  private constructor({ certificate, port = 0, journal }: FakeEventStoreDbOptions) {
    this.certificate = certificate;
    this.port = port;
    this.log = new EventLog(MAX_APPEND_BYTES, journal === undefined ? undefined : new Journal(journal));
    this.users = new Users(this.log);
  }

  static async start(options: FakeEventStoreDbOptions = {}): Promise<FakeEventStoreDb> {
    const fakeServer = new FakeEventStoreDb(options);
    await fakeServer.start();
    return fakeServer;
  }

  get address(): string {
    return `${HOST}:${this.port}`;
  }

  get connectionString(): string {
    return `esdb://${this.address}?tls=${this.certificate !== undefined}`;
  }

  /** Closes all connections and accepts no new ones. Appended events remain. */
  stop(): void {
    this.server?.forceShutdown();
    this.server = undefined;
  }

  /** Closes all connections and starts the server again, with all its events. */
  restart(): Promise<void> {
    this.restarted = this.restarted.then(() => {
      this.stop();
      return this.start();
    });
    return this.restarted;
  }

  /** Fails reads, subscriptions and appends with "not ready", like a node that is starting; false ends this. */
  setNotReady(refusing: boolean): void {
    this.isNotReady = refusing;
  }

  /** Rejects the credentials of all callers, or denies them a right; undefined ends this. */
  deny(what: 'credentials' | 'reading $all' | 'appending' | undefined): void {
    this.denied = what;
  }

  /** Makes another node the leader. Calls that require the leader are redirected to that node. */
  setLeader(leader: FakeEventStoreDb): void {
    this.leader = leader;
  }

  /** Reports another node as the leader, such as one that has just stopped; with undefined it reports itself again. */
  setAdvertisedLeader(address: string | undefined): void {
    this.advertisedLeader = address;
  }

  /** Sets the limit above which appends are rejected (`MaxAppendSize`). */
  setMaxAppendBytes(bytes: number): void {
    this.log.maxAppendSize = bytes;
  }

  /** Handles the next append, but closes all connections and restarts before its response. */
  loseNextResponse(): void {
    this.losesNextResponse = true;
  }

  /** Stores appends, but delays their responses until the returned function is called. */
  holdResponses(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.heldResponses = promise;
    return () => {
      this.heldResponses = undefined;
      resolve();
    };
  }

  async waitUntil(isMet: (stats: FakeEventStoreDb['stats']) => boolean): Promise<void> {
    while (!isMet(this.stats)) await new Promise<void>((resolve) => this.waiting.add(resolve));
  }

  private async start(): Promise<void> {
    const server = new Server({
      'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
      'grpc.keepalive_permit_without_calls': 1,
    });
    server.addService(streamServices.StreamsService, this.createStreamService());
    server.addService(userServices.UsersService, this.users.createService());
    server.addService(featureServices.ServerFeaturesService, {
      getSupportedMethods: (_: unknown, callback: sendUnaryData<unknown>) => callback(null, createSupportedMethods()),
    });
    server.addService(gossipServices.GossipService, {
      read: (_: unknown, callback: sendUnaryData<unknown>) => {
        callback(null, toClusterInfo(this.advertisedLeader ?? this.address));
        this.count('gossip');
      },
    });
    this.port = await new Promise((resolve, reject) => {
      server.bindAsync(this.address, createCredentials(this.certificate), (error, port) =>
        error ? reject(error) : resolve(port),
      );
    });
    this.server = server;
  }

  private createStreamService() {
    return {
      read: (call: Parameters<typeof read>[1]) => this.read(call),
      append: createAppendHandler(this.createAppend('append')),
      batchAppend: createBatchAppendHandler(this.createAppend('batchAppend')),
      delete: (_: unknown, callback: sendUnaryData<unknown>) => callback(unsupportedMethodError()),
      tombstone: (_: unknown, callback: sendUnaryData<unknown>) => callback(unsupportedMethodError()),
    };
  }

  private read(call: Parameters<typeof read>[1]): void {
    this.count(call.request.getOptions()?.hasSubscription() ? 'subscribe' : 'read');
    const options = call.request.getOptions();
    const stream = options?.hasAll() ? '$all' : decodeStreamName(options?.getStream()?.getStreamIdentifier());
    const error = this.findError(call, 'read', stream);
    if (error) {
      call.emit('error', error);
      return;
    }
    this.count('open');
    const onEvent: OnReadEvent = (what) => this.count(what);
    void read(this.log, call, onEvent).finally(() => this.count('open', -1));
  }

  private createAppend(name: 'append' | 'batchAppend'): AppendEvents {
    return async (call, stream, expected, events) => {
      const error = this.findError(call, 'append', stream);
      if (error) throw error;
      const appended = await this.commit(stream, expected, events);
      this.count(name);
      if (this.losesNextResponse) {
        this.losesNextResponse = false;
        await this.restart();
      }
      await this.heldResponses;
      return appended;
    };
  }

  /** Fails a repeated append with a commit timeout while the first one is not committed, as a real server does. */
  private async commit(stream: string, expected: number, events: readonly ProposedEvent[]): Promise<AppendResult> {
    const [id = ''] = events.map((event) => event.id);
    if (this.committing.has(id)) {
      await delay(COMMIT_TIMEOUT_MS);
      throw commitTimeoutError();
    }
    this.committing.add(id);
    await immediate();
    this.committing.delete(id);
    return this.log.append(stream, expected, events);
  }

  private findError({ metadata }: { readonly metadata: Metadata }, action: 'read' | 'append', stream: string) {
    if (this.isNotReady) return notReadyError();
    if (this.denied === 'credentials') return unknownUserError();
    if (this.denied === (action === 'append' ? 'appending' : `reading ${stream}`)) return accessDeniedError();
    const error = this.certificate && this.users.findAccessError(metadata, action, stream);
    if (error) return error;
    const requiresLeader = metadata.get('requires-leader')[0] === 'true';
    return this.leader && requiresLeader ? notLeaderError(HOST, this.leader.port) : undefined;
  }

  private count(what: keyof FakeEventStoreDb['stats'], by = 1): void {
    this.stats[what] += by;
    for (const resolve of this.waiting) resolve();
    this.waiting.clear();
  }
}

function createCredentials(certificate: Certificate | undefined): ServerCredentials {
  if (!certificate) return ServerCredentials.createInsecure();
  const pair = { cert_chain: Buffer.from(certificate.cert), private_key: Buffer.from(certificate.key) };
  return ServerCredentials.createSsl(null, [pair]);
}

function createSupportedMethods() {
  const methods = METHODS.map((name) =>
    new features.SupportedMethod().setServiceName('event_store.client.streams.streams').setMethodName(name),
  );
  return new features.SupportedMethods().setEventStoreServerVersion('24.10.0').setMethodsList(methods);
}

/** Returns a cluster whose only node is the leader. */
function toClusterInfo(leader: string) {
  const [host = '', port] = leader.split(':');
  const node = new gossip.MemberInfo()
    .setInstanceId(new shared.UUID().setString(randomUUID()))
    .setTimeStamp('0')
    .setState(gossip.MemberInfo.VNodeState.LEADER)
    .setIsAlive(true)
    .setHttpEndPoint(new gossip.EndPoint().setAddress(host).setPort(Number(port)));
  return new gossip.ClusterInfo().setMembersList([node]);
}
