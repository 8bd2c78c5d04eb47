/** Between the log and the wire, in the message classes that the client's package was generated with. */

import type { StreamIdentifier, UUID } from '@eventstore/db-client/generated/shared_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import type { AppendReq, BatchAppendReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import { Metadata, type ServerErrorResponse, status } from '@grpc/grpc-js';
import type { LogPosition, Proposed, StoredLogEntry } from './log.ts';

export function nameOf(identifier: StreamIdentifier | undefined): string {
  return Buffer.from(identifier?.getStreamName_asU8() ?? []).toString('utf8');
}

export function identifierOf(name: string): StreamIdentifier {
  return new shared.StreamIdentifier().setStreamName(Buffer.from(name, 'utf8'));
}

function uuid(text: string): UUID {
  return new shared.UUID().setString(text);
}

/** What a client wants to append: the events of both append calls look the same. */
export function proposedIn(message: AppendReq.ProposedMessage | BatchAppendReq.ProposedMessage): Proposed {
  const properties = message.getMetadataMap();
  return {
    id: message.getId()?.getString().toLowerCase() ?? '',
    type: properties.get('type') ?? '',
    contentType: properties.get('content-type') ?? '',
    data: message.getData_asU8(),
    metadata: message.getCustomMetadata_asU8(),
  };
}

export function eventResponse(entry: StoredLogEntry): ReadResp {
  const position = entry.position.toString();
  const event = new streams.ReadResp.ReadEvent.RecordedEvent()
    .setId(uuid(entry.id))
    .setStreamIdentifier(identifierOf(entry.stream))
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

export function notFoundResponse(stream: string): ReadResp {
  const notFound = new streams.ReadResp.StreamNotFound().setStreamIdentifier(identifierOf(stream));
  return new streams.ReadResp().setStreamNotFound(notFound);
}

export function confirmationResponse(id: string): ReadResp {
  return new streams.ReadResp().setConfirmation(new streams.ReadResp.SubscriptionConfirmation().setSubscriptionId(id));
}

export function checkpointResponse({ commit, prepare }: LogPosition): ReadResp {
  const checkpoint = new streams.ReadResp.Checkpoint()
    .setCommitPosition(commit.toString())
    .setPreparePosition(prepare.toString());
  return new streams.ReadResp().setCheckpoint(checkpoint);
}

export function caughtUpResponse(): ReadResp {
  return new streams.ReadResp().setCaughtUp(new streams.ReadResp.CaughtUp());
}

/** A status, and the trailers by which the client distinguishes errors. */
export function failure(code: status, details: string, trailers: Record<string, string> = {}): ServerErrorResponse {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(trailers)) metadata.set(name, value);
  return Object.assign(new Error(details), { code, details, metadata });
}

export const notLeader = (host: string, port: number) =>
  failure(status.NOT_FOUND, 'Leader info available', {
    exception: 'not-leader',
    'leader-endpoint-host': host,
    'leader-endpoint-port': String(port),
  });
export const notReady = () => failure(status.UNAVAILABLE, 'Server Is Not Ready');
// These two were heard from EventStoreDB 23.10.6.
export const commitTimeout = () => failure(status.ABORTED, 'Operation timed out: Commit phase timeout');
export const tooSlow = () =>
  failure(
    status.ABORTED,
    'Operation timed out: Consumer too slow to handle event while live. Client resubscription required.',
  );
// These two are as its source has them: github.com/EventStore/EventStore at oss-v23.10.6, in src/EventStore.Core/Services/Transport
// Http/AuthenticationMiddleware.cs and Grpc/RpcExceptions.cs.
export const unknownUser = () => failure(status.UNAUTHENTICATED, 'Unauthenticated');
export const denied = () => failure(status.PERMISSION_DENIED, 'Access Denied', { exception: 'access-denied' });
export const unsupported = () => failure(status.UNIMPLEMENTED, 'the double does not serve this');
