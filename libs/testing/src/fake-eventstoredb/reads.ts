import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import { type ServerWritableStream, status } from '@grpc/grpc-js';
import { BEFORE_ALL, type EventLog, type LogPosition, type StoredLogEntry } from './log.ts';
import {
  createCaughtUpResponse,
  createCheckpointResponse,
  createConfirmationResponse,
  createEventResponse,
  createNotFoundResponse,
  createServiceError,
  decodeStreamName,
  slowConsumerError,
  unsupportedMethodError,
} from './wire.ts';

const BACKWARDS = 1;
/** Number of entries that a subscription searches per page, unless the client sets a maximum. */
const PAGE = 32;
/** A live subscription for which more events and checkpoints are pending is dropped. */
const MAX_PENDING_MESSAGES = 32;

type Call = ServerWritableStream<ReadReq, ReadResp>;
type Options = ReadReq.Options;

/** Handles `Read`: one stream, all streams, or a subscription to all. Waits while the client does not receive. */
export async function read(log: EventLog, call: Call, onEvent: OnReadEvent): Promise<void> {
  const disconnected = new AbortController();
  for (const event of ['cancelled', 'close', 'error']) call.on(event, () => disconnected.abort());
  const send = async (response: ReadResp) => {
    if (disconnected.signal.aborted || call.write(response)) return;
    await once(call, 'drain', { signal: disconnected.signal }).catch(() => {}); // the client disconnected
  };
  try {
    const options = call.request.getOptions() as Options;
    if (options.hasSubscription()) await subscribe(log, options, { send, onEvent }, disconnected.signal);
    else if (options.hasStream()) await readStream(log, options, send);
    else await readAll(log, options, { send, onEvent });
    if (!disconnected.signal.aborted) call.end();
  } catch (error) {
    if (!disconnected.signal.aborted) call.emit('error', error);
  }
}

type SendResponse = (response: ReadResp) => Promise<void>;

/** Called for each forward page of `$all`, each entry in it, and when a subscription has caught up or is dropped. */
export type OnReadEvent = (what: 'pages' | 'entries' | 'caughtUp' | 'dropped') => void;

interface ReadCallbacks {
  readonly send: SendResponse;
  readonly onEvent: OnReadEvent;
}

async function readStream(log: EventLog, options: Options, send: SendResponse): Promise<void> {
  const from = options.getStream() as ReadReq.Options.StreamOptions;
  const name = decodeStreamName(from.getStreamIdentifier());
  const entries = log.getStream(name);
  if (entries.length === 0) return send(createNotFoundResponse(name));
  const backwards = options.getReadDirection() === BACKWARDS;
  const first = from.hasRevision() ? Number(from.getRevision()) : from.hasEnd() ? entries.length - 1 : 0;
  const count = Number(options.getCount());
  const chosen = backwards
    ? entries.slice(Math.max(0, first + 1 - count), first + 1).reverse()
    : entries.slice(first, first + count);
  for (const entry of chosen) await send(createEventResponse(entry));
}

/** Reads forwards starting with the entry at the position, or backwards starting with the one before it. */
async function readAll(log: EventLog, options: Options, { send, onEvent }: ReadCallbacks): Promise<void> {
  if (options.hasFilter()) throw unsupportedMethodError();
  const count = Number(options.getCount());
  if (options.getReadDirection() === BACKWARDS) {
    const end = getEndIndex(log, options);
    for (const entry of log.entries.slice(Math.max(0, end - count), end).reverse())
      await send(createEventResponse(entry));
    return;
  }
  onEvent('pages');
  const logPosition = parsePosition(log, options);
  const first = log.findIndexAfter({ commit: logPosition.commit, prepare: logPosition.prepare - 1n });
  for (const entry of log.entries.slice(first, first + count)) {
    onEvent('entries');
    await send(createEventResponse(entry));
  }
}

/**
 * Sends the events of all streams with certain name prefixes, after a position and then live. Checkpoints report how
 * far the log has been searched. A live checkpoint is the position of the last entry that was searched. During
 * the catch-up, a checkpoint is the position of the next entry, or of the end of the log, with the prepare position 0.
 */
async function subscribe(
  log: EventLog,
  options: Options,
  { send, onEvent }: ReadCallbacks,
  signal: AbortSignal,
): Promise<void> {
  const filter = options.getFilter();
  const prefixes = filter?.getStreamIdentifier()?.getPrefixList() ?? [];
  if (!options.hasAll() || prefixes.length === 0) throw unsupportedMethodError();
  const interval = (filter?.getMax() || PAGE) * (filter?.getCheckpointintervalmultiplier() || 1);
  const isIncluded = ({ stream }: StoredLogEntry) => prefixes.some((prefix) => stream.startsWith(prefix));

  let index = log.findIndexAfter(parsePosition(log, options));
  const createSearchCheckpoint = () =>
    createCheckpointResponse({ commit: log.entries[index]?.position ?? log.end, prepare: 0n });
  await send(createConfirmationResponse(randomUUID()));
  for (let searched = 1; index < log.entries.length && !signal.aborted; searched++) {
    const entry = log.entries[index++] as StoredLogEntry;
    if (isIncluded(entry)) await send(createEventResponse(entry));
    if (searched % interval === 0) await send(createSearchCheckpoint());
  }
  await send(createSearchCheckpoint());
  await send(createCaughtUpResponse());
  onEvent('caughtUp');

  for (let searched = 1; !signal.aborted; searched++) {
    await log.waitForIndex(index, signal);
    const messages = log.entries.slice(index).filter(isIncluded).length + (log.entries.length - index) / interval;
    if (messages > MAX_PENDING_MESSAGES) {
      onEvent('dropped');
      throw slowConsumerError();
    }
    const entry = log.entries[index++];
    if (!entry) return;
    if (isIncluded(entry)) await send(createEventResponse(entry));
    if (searched % interval === 0)
      await send(createCheckpointResponse({ commit: entry.position, prepare: entry.position }));
  }
}

/** Returns the number of entries before the start of a backward read. */
function getEndIndex(log: EventLog, options: Options): number {
  if (options.getAll()?.hasEnd()) return log.entries.length;
  const { commit, prepare } = parsePosition(log, options);
  return log.findIndexAfter({ commit, prepare: prepare - 1n });
}

function parsePosition(log: EventLog, options: Options): LogPosition {
  const from = options.getAll() as ReadReq.Options.AllOptions;
  const position = from.getPosition();
  if (!position) {
    if (!from.hasStart()) throw unsupportedMethodError();
    return BEFORE_ALL;
  }
  const logPosition = { commit: BigInt(position.getCommitPosition()), prepare: BigInt(position.getPreparePosition()) };
  if (!log.isBoundary(logPosition)) throw createServiceError(status.INVALID_ARGUMENT, 'Invalid position');
  return logPosition;
}
