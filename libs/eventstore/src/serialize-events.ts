import { AppendTooLargeError, type NewEvent } from '#kernel';

/** An event with its data and metadata as JSON text. */
export interface SerializedEvent extends Pick<NewEvent, 'id' | 'type'> {
  readonly data: string;
  readonly metadata: string;
}

/** The events of one append. */
export interface SerializedAppend {
  readonly events: readonly SerializedEvent[];
  /** As EventStoreDB counts them: the bytes of data and metadata, and two for each character of a type. */
  readonly bytes: number;
}

/**
 * Serialises the events of an append before they are sent. Events that are too large or not JSON are rejected here, so
 * they do not fail other appends of the same batch.
 * @throws TypeError if an event cannot be converted to JSON; AppendTooLargeError if the append exceeds `maxBytes`
 */
export function serializeEvents(stream: string, events: readonly NewEvent[], maxBytes: number): SerializedAppend {
  const serialized = events.map(serializeEvent);
  const bytes = serialized.reduce((sum, event) => sum + countBytes(event), 0);
  if (bytes > maxBytes)
    throw new AppendTooLargeError(`an append to ${stream} has ${bytes} bytes; the maximum is ${maxBytes}`);
  return { events: serialized, bytes };
}

function countBytes({ type, data, metadata }: SerializedEvent): number {
  return 2 * type.length + Buffer.byteLength(data) + Buffer.byteLength(metadata);
}

function serializeEvent({ id, type, data, metadata }: NewEvent): SerializedEvent {
  const text = JSON.stringify(data);
  if (text === undefined) throw new TypeError(`a ${type} without data cannot be stored`);
  return { id, type, data: text, metadata: JSON.stringify(metadata) };
}
