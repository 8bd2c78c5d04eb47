import { finished, type Readable } from 'node:stream';
import type { EventStoreDBClient } from '@eventstore/db-client';
import { convertToCommandError } from '@eventstore/db-client/dist/utils/CommandError.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import type { StreamsClient } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import services from '@eventstore/db-client/generated/streams_grpc_pb.js';
import streams, { type ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import { START_POSITION } from '#kernel';
import { type LogEntry, parseLogEntry } from './entries.ts';

/** Internal methods with which the client makes a call on its own connection and with its own credentials. */
interface ClientInternals {
  GRPCStreamCreator(
    Client: typeof StreamsClient,
    name: string,
    call: (client: StreamsClient) => Readable,
  ): () => Promise<Readable>;
  /** Returns the arguments of a gRPC call that follow the request. */
  callArguments(request: object, options: { readonly deadline: number }): readonly [metadata: never, options: never];
}

/**
 * Reads entries of the log forwards: the entry at position `after` if there is one, then those after it. Works like the
 * client's `readAll`, but parses the responses with `parseLogEntry`.
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
