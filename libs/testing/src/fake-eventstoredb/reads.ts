import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import { type ServerWritableStream, status } from '@grpc/grpc-js';
import { BEFORE_ALL, type EventLog, type LogPosition, type StoredLogEntry } from './log.ts';
import {
  caughtUpResponse,
  checkpointResponse,
  confirmationResponse,
  eventResponse,
  failure,
  nameOf,
  notFoundResponse,
  tooSlow,
  unsupported,
} from './wire.ts';

const BACKWARDS = 1;
/** Entries of one page while a subscription catches up. */
const PAGE = 32;
/** Messages that wait for a subscription that is live, checkpoints included; one that lets more wait is dropped. */
const MAX_LIVE = 32;

type Call = ServerWritableStream<ReadReq, ReadResp>;
type Options = ReadReq.Options;

/**
 * `Read`: a stream or all of them, once or as a subscription. What is written waits for the client to take it.
 */
export async function read(log: EventLog, call: Call, tell: Tell): Promise<void> {
  const gone = new AbortController();
  for (const event of ['cancelled', 'close', 'error']) call.on(event, () => gone.abort());
  const send = async (response: ReadResp) => {
    if (gone.signal.aborted || call.write(response)) return;
    await once(call, 'drain', { signal: gone.signal }).catch(() => {}); // the client has gone
  };
  try {
    const options = call.request.getOptions() as Options;
    if (options.hasSubscription()) await subscribe(log, options, { send, tell }, gone.signal);
    else if (options.hasStream()) await readStream(log, options, send);
    else await readAll(log, options, { send, tell });
    if (!gone.signal.aborted) call.end();
  } catch (error) {
    if (!gone.signal.aborted) call.emit('error', error);
  }
}

type Send = (response: ReadResp) => Promise<void>;

/** A page of the whole log is read, an entry of it was sent, a subscription has had all there was, or was dropped. */
export type Tell = (what: 'pages' | 'entries' | 'caughtUp' | 'dropped') => void;

interface Reader {
  readonly send: Send;
  readonly tell: Tell;
}

async function readStream(log: EventLog, options: Options, send: Send): Promise<void> {
  const from = options.getStream() as ReadReq.Options.StreamOptions;
  const name = nameOf(from.getStreamIdentifier());
  const entries = log.stream(name);
  if (entries.length === 0) return send(notFoundResponse(name));
  const backwards = options.getReadDirection() === BACKWARDS;
  const first = from.hasRevision() ? Number(from.getRevision()) : from.hasEnd() ? entries.length - 1 : 0;
  const count = Number(options.getCount());
  const chosen = backwards
    ? entries.slice(Math.max(0, first + 1 - count), first + 1).reverse()
    : entries.slice(first, first + count);
  for (const entry of chosen) await send(eventResponse(entry));
}

/** Forwards from an entry on, that one included, or backwards from the one before it. */
async function readAll(log: EventLog, options: Options, { send, tell }: Reader): Promise<void> {
  if (options.hasFilter()) throw unsupported();
  const count = Number(options.getCount());
  if (options.getReadDirection() === BACKWARDS) {
    const end = endIn(log, options);
    for (const entry of log.entries.slice(Math.max(0, end - count), end).reverse()) await send(eventResponse(entry));
    return;
  }
  tell('pages');
  const place = placeIn(log, options);
  const first = log.indexBehind({ commit: place.commit, prepare: place.prepare - 1n });
  for (const entry of log.entries.slice(first, first + count)) {
    tell('entries');
    await send(eventResponse(entry));
  }
}

/**
 * All streams with certain beginnings of their names, behind a position; then what is appended later. Checkpoints report how
 * far the log has been searched: live they name an entry; on the way there they may name the place where the next
 * entry will begin, which has not been seen yet (prepare position 0).
 */
async function subscribe(log: EventLog, options: Options, { send, tell }: Reader, over: AbortSignal): Promise<void> {
  const filter = options.getFilter();
  const prefixes = filter?.getStreamIdentifier()?.getPrefixList() ?? [];
  if (!options.hasAll() || prefixes.length === 0) throw unsupported();
  const interval = (filter?.getMax() || PAGE) * (filter?.getCheckpointintervalmultiplier() || 1);
  const isWanted = ({ stream }: StoredLogEntry) => prefixes.some((prefix) => stream.startsWith(prefix));

  let index = log.indexBehind(placeIn(log, options));
  const searchedSoFar = () => checkpointResponse({ commit: log.entries[index]?.position ?? log.end, prepare: 0n });
  await send(confirmationResponse(randomUUID()));
  for (let searched = 1; index < log.entries.length && !over.aborted; searched++) {
    const entry = log.entries[index++] as StoredLogEntry;
    if (isWanted(entry)) await send(eventResponse(entry));
    if (searched % interval === 0) await send(searchedSoFar());
  }
  await send(searchedSoFar());
  await send(caughtUpResponse());
  tell('caughtUp');

  for (let searched = 1; !over.aborted; searched++) {
    await log.reaches(index, over);
    const messages = log.entries.slice(index).filter(isWanted).length + (log.entries.length - index) / interval;
    if (messages > MAX_LIVE) {
      tell('dropped');
      throw tooSlow();
    }
    const entry = log.entries[index++];
    if (!entry) return;
    if (isWanted(entry)) await send(eventResponse(entry));
    if (searched % interval === 0) await send(checkpointResponse({ commit: entry.position, prepare: entry.position }));
  }
}

/** How many entries are before where a read backwards begins. */
function endIn(log: EventLog, options: Options): number {
  if (options.getAll()?.hasEnd()) return log.entries.length;
  const { commit, prepare } = placeIn(log, options);
  return log.indexBehind({ commit, prepare: prepare - 1n });
}

function placeIn(log: EventLog, options: Options): LogPosition {
  const from = options.getAll() as ReadReq.Options.AllOptions;
  const position = from.getPosition();
  if (!position) {
    if (!from.hasStart()) throw unsupported();
    return BEFORE_ALL;
  }
  const place = { commit: BigInt(position.getCommitPosition()), prepare: BigInt(position.getPreparePosition()) };
  if (!log.isBoundary(place)) throw failure(status.INVALID_ARGUMENT, 'Invalid position');
  return place;
}
