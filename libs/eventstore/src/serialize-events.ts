import { AppendTooLargeError, type NewEvent } from '#kernel';

/** A fact as text, as every store keeps it. */
export interface SerializedEvent extends Pick<NewEvent, 'id' | 'type'> {
  readonly data: string;
  readonly metadata: string;
}

/** The facts of one append. */
export interface SerializedAppend {
  readonly events: readonly SerializedEvent[];
  /** As EventStoreDB counts them: their texts, and two for each character of a type. */
  readonly bytes: number;
}

/**
 * Facts as text: before anything is sent, so that what no store takes harms no other append.
 * @throws TypeError when one is not JSON; AppendTooLargeError when they have more than `maxBytes` together
 */
export function serializeEvents(stream: string, events: readonly NewEvent[], maxBytes: number): SerializedAppend {
  const serialized = events.map(serializeEvent);
  const bytes = serialized.reduce((sum, event) => sum + countBytes(event), 0);
  if (bytes > maxBytes)
    throw new AppendTooLargeError(`an append to ${stream} has ${bytes} bytes, and may have ${maxBytes}`);
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
