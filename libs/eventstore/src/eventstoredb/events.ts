import { type EventData, jsonEvent, type RecordedEvent, type StreamingRead } from '@eventstore/db-client';
import { type Metadata, type NewEvent, type StoredEvent } from '#kernel';

export function toEventData({ id, type, data, metadata }: NewEvent): EventData {
  return jsonEvent({ id, type, data: data as never, metadata });
}

/**
 * Converts an event of the client. Its position is the commit position. An append by gRPC commits every event by
 * itself, so its commit position equals its prepare position. They differ only for transactions of the legacy TCP
 * protocol.
 * @throws Error if the server does not return positions
 */
export function toStoredEvent(event: RecordedEvent): StoredEvent {
  if (!event.position) throw new Error('the server returns no positions: EventStoreDB 23.10 or newer is required');
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

/** Collects all events of a read. */
export async function toStoredEvents(
  stream: StreamingRead<{ readonly event?: RecordedEvent }>,
): Promise<StoredEvent[]> {
  stream.on('error', () => {}); // an error after the last event has no other listener and would end the process
  const events: StoredEvent[] = [];
  for await (const { event } of stream) if (event) events.push(toStoredEvent(event));
  return events;
}
