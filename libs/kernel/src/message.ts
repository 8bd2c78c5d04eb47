/** An event or a command as plain data. Events are named in the past tense, commands in the imperative. */
export type Message<Type extends string = string, Data = unknown> = Readonly<{ type: Type; data: Data }>;

/** Stored with an event, outside its data: the version of its type, and its cause. */
export interface Metadata {
  /** Version of the event type; 1 if omitted. */
  readonly version?: number;
  /** The actor of the command. */
  readonly actor?: string;
  /** The correlation id of the event's `Cause`. The oldest events have `request` or `topup` instead. */
  readonly $correlationId?: string;
  /** Id of the event or request that directly led to the event; equal to `$correlationId` if omitted. */
  readonly $causationId?: string;
  readonly [name: string]: string | number | undefined;
}

/** An event to append. The writer chooses the id, so that a repeated append can be recognised. */
export interface NewEvent {
  readonly id: string;
  readonly type: string;
  readonly data: unknown;
  readonly metadata: Metadata;
}

/** An event as the event store returns it. */
export type StoredEvent<E extends Message = Message> = E & {
  readonly id: string;
  readonly stream: string;
  /** Position in its stream, from 0. */
  readonly revision: number;
  /** Position in the order of all events. Increases, with gaps. */
  readonly position: bigint;
  /** Booking time, ISO 8601; the time of the event itself is in its data. */
  readonly recordedAt: string;
  readonly metadata: Metadata;
};
