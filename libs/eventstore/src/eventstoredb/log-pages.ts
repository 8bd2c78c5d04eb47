import { finished, type Readable } from 'node:stream';
import type { EventStoreDBClient } from '@eventstore/db-client';
import { convertToCommandError } from '@eventstore/db-client/dist/utils/CommandError.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import type { StreamsClient } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import services from '@eventstore/db-client/generated/streams_grpc_pb.js';
import streams, { type ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import { START_POSITION } from '#kernel';
import { type LogEntry, parseLogEntry } from './entries.ts';

/** What is internal to the client: how it makes its calls, on a connection that it watches, as its user. */
interface ClientInternals {
  GRPCStreamCreator(
    Client: typeof StreamsClient,
    name: string,
    call: (client: StreamsClient) => Readable,
  ): () => Promise<Readable>;
  /** Returns what each call of gRPC takes behind its request. */
  callArguments(request: object, options: { readonly deadline: number }): readonly [metadata: never, options: never];
}

/**
 * Entries of the whole log, forwards: the one at a position, where there is one, and what is behind it. As the client's `readAll`,
 * but for what is made of the answers.
 */
export async function readLog(
  client: EventStoreDBClient,
  after: bigint,
  maxCount: number,
  isIncluded: (stream: string) => boolean,
): Promise<readonly LogEntry[]> {
  const inner = client as unknown as ClientInternals;
  const { path, requestSerialize } = services.StreamsService.read;
  const callArguments = inner.callArguments({}, { deadline: Number.POSITIVE_INFINITY });
  const call = inner.GRPCStreamCreator(services.StreamsClient, 'readLog', (grpc) =>
    grpc.makeServerStreamRequest(
      path,
      requestSerialize,
      (bytes) => parseLogEntry(bytes, isIncluded),
      createReadRequest(after, maxCount),
      ...callArguments,
    ),
  );
  const responses = await call();
  const entries: LogEntry[] = [];
  return new Promise((resolve, reject) => {
    responses.on('data', (entry: LogEntry) => entry.position !== START_POSITION && entries.push(entry));
    finished(responses, (error) => (error ? reject(convertToCommandError(error)) : resolve(entries)));
  });
}

function createReadRequest(after: bigint, maxCount: number): ReadReq {
  const empty = new shared.Empty();
  const all = new streams.ReadReq.Options.AllOptions();
  const position = after.toString();
  if (after === START_POSITION) all.setStart(empty);
  else all.setPosition(new streams.ReadReq.Options.Position().setCommitPosition(position).setPreparePosition(position));
  const options = new streams.ReadReq.Options()
    .setAll(all)
    .setCount(maxCount.toString())
    .setUuidOption(new streams.ReadReq.Options.UUIDOption().setString(empty))
    .setNoFilter(empty);
  return new streams.ReadReq().setOptions(options);
}
