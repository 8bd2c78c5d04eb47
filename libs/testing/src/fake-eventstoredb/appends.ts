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
import { type Appended, NO_STREAM, type Proposed } from './log.ts';
import { failure, identifierOf, nameOf, proposedIn, unsupported } from './wire.ts';

/** Stores, and resolves when the answer may go out. Rejects instead of answering. */
export type Store = (
  call: { readonly metadata: Metadata },
  stream: string,
  expected: number,
  events: readonly Proposed[],
) => Promise<Appended>;

/** `Append`: one call per append. */
export function append(store: Store): handleClientStreamingCall<AppendReq, AppendResp> {
  return (call, answer) => {
    let options: AppendReq.Options | undefined;
    const events: Proposed[] = [];
    call.on('data', (request: AppendReq) => {
      options ??= request.getOptions();
      const message = request.getProposedMessage();
      if (message) events.push(proposedIn(message));
    });
    call.on('error', () => {}); // a client that has gone
    call.on('end', () => {
      if (!options?.hasRevision() && !options?.hasNoStream()) return answer(unsupported());
      const expected = options.hasNoStream() ? NO_STREAM : Number(options.getRevision());
      store(call, nameOf(options.getStreamIdentifier()), expected, events).then(
        (appended) => {
          if (appended.kind === 'too-big') answer(tooBig(appended.limit));
          else answer(null, answerTo(appended, expected));
        },
        (error) => answer(error),
      );
    });
  };
}

function answerTo(appended: Exclude<Appended, { kind: 'too-big' }>, expected: number): AppendResp {
  const response = new streams.AppendResp();
  if (appended.kind === 'stored') {
    const position = appended.position.toString();
    return response.setSuccess(
      new streams.AppendResp.Success()
        .setCurrentRevision(appended.revision.toString())
        .setPosition(new streams.AppendResp.Position().setCommitPosition(position).setPreparePosition(position)),
    );
  }
  const wrong = new streams.AppendResp.WrongExpectedVersion();
  if (appended.current === NO_STREAM) wrong.setCurrentNoStream(new shared.Empty());
  else wrong.setCurrentRevision(appended.current.toString());
  if (expected === NO_STREAM) wrong.setExpectedNoStream(new shared.Empty());
  else wrong.setExpectedRevision(expected.toString());
  return response.setWrongExpectedVersion(wrong);
}

function tooBig(limit: number) {
  return failure(status.INVALID_ARGUMENT, `Maximum Append Size of ${limit} Exceeded.`, {
    exception: 'maximum-append-size-exceeded',
    'maximum-append-size': String(limit),
  });
}

interface Batch {
  readonly stream: string;
  readonly expected: number;
  readonly events: Proposed[];
}

/** `BatchAppend`: all appends of a client in one call. Our adapter stays away from it; this is here to show that. */
export function batchAppend(store: Store): handleBidiStreamingCall<BatchAppendReq, BatchAppendResp> {
  return (call) => {
    const open = new Map<string, Batch>();
    call.on('data', (request: BatchAppendReq) => {
      const id = request.getCorrelationId()?.getString() ?? '';
      const options = request.getOptions();
      if (options) {
        const expected = options.hasStreamPosition() ? Number(options.getStreamPosition()) : NO_STREAM;
        open.set(id, { stream: nameOf(options.getStreamIdentifier()), expected, events: [] });
      }
      const batch = open.get(id);
      if (!batch) return;
      batch.events.push(...request.getProposedMessagesList().map(proposedIn));
      if (!request.getIsFinal()) return;
      open.delete(id);
      store(call, batch.stream, batch.expected, batch.events).then(
        (appended) => call.write(batchAnswerTo(request, batch.stream, appended)),
        (error) => call.emit('error', error),
      );
    });
    call.on('error', () => {});
    call.on('end', () => call.end());
  };
}

function batchAnswerTo(request: BatchAppendReq, stream: string, appended: Appended): BatchAppendResp {
  const response = new streams.BatchAppendResp()
    .setCorrelationId(request.getCorrelationId())
    .setStreamIdentifier(identifierOf(stream));
  if (appended.kind !== 'stored') return response.setError(statusOf(appended));
  const position = appended.position.toString();
  return response.setSuccess(
    new streams.BatchAppendResp.Success()
      .setCurrentRevision(appended.revision.toString())
      .setPosition(new shared.AllStreamPosition().setCommitPosition(position).setPreparePosition(position)),
  );
}

function statusOf(appended: Exclude<Appended, { kind: 'stored' }>): Status {
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
