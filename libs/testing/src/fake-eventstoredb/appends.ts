import shared from '@eventstore/db-client/generated/shared_pb.js';
import type { Status } from '@eventstore/db-client/generated/status_pb.js';
import statuses from '@eventstore/db-client/generated/status_pb.js';
import type {
  AppendReq,
  AppendResp,
  BatchAppendReq,
  BatchAppendResp,
} from '@eventstore/db-client/generated/streams_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import { type handleBidiStreamingCall, type handleClientStreamingCall, type Metadata, status } from '@grpc/grpc-js';
import any from 'google-protobuf/google/protobuf/any_pb.js';
import empty from 'google-protobuf/google/protobuf/empty_pb.js';
import { type AppendResult, NO_STREAM, type ProposedEvent } from './log.ts';
import {
  createServiceError,
  decodeStreamName,
  toProposedEvent,
  toStreamIdentifier,
  unsupportedMethodError,
} from './wire.ts';

/** Appends events. Resolves with the result when the response may be sent, or rejects with the gRPC error to send. */
export type AppendEvents = (
  call: { readonly metadata: Metadata },
  stream: string,
  expected: number,
  events: readonly ProposedEvent[],
) => Promise<AppendResult>;

/** Handles `Append`: one call per append. */
export function createAppendHandler(store: AppendEvents): handleClientStreamingCall<AppendReq, AppendResp> {
  return (call, callback) => {
    let options: AppendReq.Options | undefined;
    const events: ProposedEvent[] = [];
    call.on('data', (request: AppendReq) => {
      options ??= request.getOptions();
      const message = request.getProposedMessage();
      if (message) events.push(toProposedEvent(message));
    });
    call.on('error', () => {}); // the client disconnected
    call.on('end', () => {
      if (!options?.hasRevision() && !options?.hasNoStream()) return callback(unsupportedMethodError());
      const expected = options.hasNoStream() ? NO_STREAM : Number(options.getRevision());
      store(call, decodeStreamName(options.getStreamIdentifier()), expected, events).then(
        (appended) => {
          if (appended.kind === 'too-big') callback(appendTooLargeError(appended.limit));
          else callback(null, toAppendResponse(appended, expected));
        },
        (error) => callback(error),
      );
    });
  };
}

function toAppendResponse(appended: Exclude<AppendResult, { kind: 'too-big' }>, expected: number): AppendResp {
  const response = new streams.AppendResp();
  if (appended.kind === 'stored') {
    const position = appended.position.toString();
    return response.setSuccess(
      new streams.AppendResp.Success()
        .setCurrentRevision(appended.revision.toString())
        .setPosition(new streams.AppendResp.Position().setCommitPosition(position).setPreparePosition(position)),
    );
  }
  const conflict = new streams.AppendResp.WrongExpectedVersion();
  if (appended.current === NO_STREAM) conflict.setCurrentNoStream(new shared.Empty());
  else conflict.setCurrentRevision(appended.current.toString());
  if (expected === NO_STREAM) conflict.setExpectedNoStream(new shared.Empty());
  else conflict.setExpectedRevision(expected.toString());
  return response.setWrongExpectedVersion(conflict);
}

function appendTooLargeError(limit: number) {
  return createServiceError(status.INVALID_ARGUMENT, `Maximum Append Size of ${limit} Exceeded.`, {
    exception: 'maximum-append-size-exceeded',
    'maximum-append-size': String(limit),
  });
}

interface Batch {
  readonly stream: string;
  readonly expected: number;
  readonly events: ProposedEvent[];
}

/** Handles `BatchAppend`: all appends of a client in one call. Tests check that the adapter does not use it. */
export function createBatchAppendHandler(
  store: AppendEvents,
): handleBidiStreamingCall<BatchAppendReq, BatchAppendResp> {
  return (call) => {
    const open = new Map<string, Batch>();
    call.on('data', (request: BatchAppendReq) => {
      const id = request.getCorrelationId()?.getString() ?? '';
      const options = request.getOptions();
      if (options) {
        const expected = options.hasStreamPosition() ? Number(options.getStreamPosition()) : NO_STREAM;
        open.set(id, { stream: decodeStreamName(options.getStreamIdentifier()), expected, events: [] });
      }
      const batch = open.get(id);
      if (!batch) return;
      batch.events.push(...request.getProposedMessagesList().map(toProposedEvent));
      if (!request.getIsFinal()) return;
      open.delete(id);
      store(call, batch.stream, batch.expected, batch.events).then(
        (appended) => call.write(toBatchAppendResponse(request, batch.stream, appended)),
        (error) => call.emit('error', error),
      );
    });
    call.on('error', () => {});
    call.on('end', () => call.end());
  };
}

function toBatchAppendResponse(request: BatchAppendReq, stream: string, appended: AppendResult): BatchAppendResp {
  const response = new streams.BatchAppendResp()
    .setCorrelationId(request.getCorrelationId())
    .setStreamIdentifier(toStreamIdentifier(stream));
  if (appended.kind !== 'stored') return response.setError(toStatus(appended));
  const position = appended.position.toString();
  return response.setSuccess(
    new streams.BatchAppendResp.Success()
      .setCurrentRevision(appended.revision.toString())
      .setPosition(new shared.AllStreamPosition().setCommitPosition(position).setPreparePosition(position)),
  );
}

function toStatus(appended: Exclude<AppendResult, { kind: 'stored' }>): Status {
  const details = new any.Any();
  if (appended.kind === 'too-big') {
    const message = new shared.MaximumAppendSizeExceeded().setMaxappendsize(appended.limit);
    details.pack(message.serializeBinary(), 'event_store.client.MaximumAppendSizeExceeded');
  } else {
    const message = new shared.WrongExpectedVersion();
    if (appended.current === NO_STREAM) message.setCurrentNoStream(new empty.Empty());
    else message.setCurrentStreamRevision(appended.current.toString());
    details.pack(message.serializeBinary(), 'event_store.client.WrongExpectedVersion');
  }
  return new statuses.Status().setCode(status.FAILED_PRECONDITION as never).setDetails(details);
}
