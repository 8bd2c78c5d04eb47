import { type EventData, jsonEvent, type RecordedEvent, type StreamingRead } from '@eventstore/db-client';
import { type Metadata, type NewEvent, type StoredEvent } from '#kernel';

export function toEventData({ id, type, data, metadata }: NewEvent): EventData {
  return jsonEvent({ id, type, data: data as never, metadata });
}

/**
 * A fact's position is its commit position. Every append of a gRPC client commits each of its events by itself, so
 * commit and prepare position are one number, in all answers of the server; only the old TCP transactions differ.
 */
export function toStoredEvent(event: RecordedEvent): StoredEvent {
  if (!event.position) throw new Error('the server returns no positions: EventStoreDB 22.6 or newer is needed');
  return {
    id: event.id,
    stream: event.streamId,
    revision: Number(event.revision),
    position: event.position.commit,
    recordedAt: event.created.toISOString(),
    type: event.type,
    data: event.data,
    metadata: (event.metadata ?? {}) as Metadata,
  };
}

/** All events that a read returns. */
export async function toStoredEvents(
  stream: StreamingRead<{ readonly event?: RecordedEvent }>,
): Promise<StoredEvent[]> {
  stream.on('error', () => {}); // a connection that breaks after the answer has no other listener, which ends the process
  const events: StoredEvent[] = [];
  for await (const { event } of stream) if (event) events.push(toStoredEvent(event));
  return events;
}
