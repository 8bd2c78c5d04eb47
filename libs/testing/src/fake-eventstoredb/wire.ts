/** Converts between entries of the log and the generated message classes of the client's package. */

import type { StreamIdentifier, UUID } from '@eventstore/db-client/generated/shared_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import type { AppendReq, BatchAppendReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import { Metadata, type ServerErrorResponse, status } from '@grpc/grpc-js';
import type { LogPosition, ProposedEvent, StoredLogEntry } from './log.ts';

export function decodeStreamName(identifier: StreamIdentifier | undefined): string {
  return Buffer.from(identifier?.getStreamName_asU8() ?? []).toString('utf8');
}

export function toStreamIdentifier(name: string): StreamIdentifier {
  return new shared.StreamIdentifier().setStreamName(Buffer.from(name, 'utf8'));
}

function createUuid(text: string): UUID {
  return new shared.UUID().setString(text);
}

/** Parses an event to append. Both append calls use the same format for events. */
export function toProposedEvent(message: AppendReq.ProposedMessage | BatchAppendReq.ProposedMessage): ProposedEvent {
  const properties = message.getMetadataMap();
  return {
    id: message.getId()?.getString().toLowerCase() ?? '',
    type: properties.get('type') ?? '',
    contentType: properties.get('content-type') ?? '',
    data: message.getData_asU8(),
    metadata: message.getCustomMetadata_asU8(),
  };
}

export function createEventResponse(entry: StoredLogEntry): ReadResp {
  const position = entry.position.toString();
  const event = new streams.ReadResp.ReadEvent.RecordedEvent()
    .setId(createUuid(entry.id))
    .setStreamIdentifier(toStreamIdentifier(entry.stream))
    .setStreamRevision(entry.revision.toString())
    .setCommitPosition(position)
    .setPreparePosition(position)
    .setData(entry.data)
    .setCustomMetadata(entry.metadata);
  event
    .getMetadataMap()
    .set('type', entry.type)
    .set('content-type', entry.contentType)
    .set('created', entry.created.toString());
  return new streams.ReadResp().setEvent(new streams.ReadResp.ReadEvent().setEvent(event).setCommitPosition(position));
}

export function createNotFoundResponse(stream: string): ReadResp {
  const notFound = new streams.ReadResp.StreamNotFound().setStreamIdentifier(toStreamIdentifier(stream));
  return new streams.ReadResp().setStreamNotFound(notFound);
}

export function createConfirmationResponse(id: string): ReadResp {
  return new streams.ReadResp().setConfirmation(new streams.ReadResp.SubscriptionConfirmation().setSubscriptionId(id));
}

export function createCheckpointResponse({ commit, prepare }: LogPosition): ReadResp {
  const checkpoint = new streams.ReadResp.Checkpoint()
    .setCommitPosition(commit.toString())
    .setPreparePosition(prepare.toString());
  return new streams.ReadResp().setCheckpoint(checkpoint);
}

export function createCaughtUpResponse(): ReadResp {
  return new streams.ReadResp().setCaughtUp(new streams.ReadResp.CaughtUp());
}

/** Creates a gRPC error with the trailers by which the client distinguishes errors. */
export function createServiceError(
  code: status,
  details: string,
  trailers: Record<string, string> = {},
): ServerErrorResponse {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(trailers)) metadata.set(name, value);
  return Object.assign(new Error(details), { code, details, metadata });
}

export const notLeaderError = (host: string, port: number) =>
  createServiceError(status.NOT_FOUND, 'Leader info available', {
    exception: 'not-leader',
    'leader-endpoint-host': host,
    'leader-endpoint-port': String(port),
  });
export const notReadyError = () => createServiceError(status.UNAVAILABLE, 'Server Is Not Ready');
// The next two messages were received from EventStoreDB 23.10.6.
export const commitTimeoutError = () => createServiceError(status.ABORTED, 'Operation timed out: Commit phase timeout');
export const slowConsumerError = () =>
  createServiceError(
    status.ABORTED,
    'Operation timed out: Consumer too slow to handle event while live. Client resubscription required.',
  );
// The next two are copied from the server's source: github.com/EventStore/EventStore at oss-v23.10.6, in
// src/EventStore.Core/Services/Transport/Http/AuthenticationMiddleware.cs and Grpc/RpcExceptions.cs.
export const unknownUserError = () => createServiceError(status.UNAUTHENTICATED, 'Unauthenticated');
export const accessDeniedError = () =>
  createServiceError(status.PERMISSION_DENIED, 'Access Denied', { exception: 'access-denied' });
export const unsupportedMethodError = () => createServiceError(status.UNIMPLEMENTED, 'not supported by the fake');
