/** A fact or a command as plain data: facts are named in the past tense, commands in the imperative. */
export type Message<Type extends string = string, Data = unknown> = Readonly<{ type: Type; data: Data }>;

/** What travels beside a fact without being part of it: its version, and what caused it. */
export interface Metadata {
  /** Of the fact's type; 1 where it is left out. */
  readonly version?: number;
  /** The actor of the command. */
  readonly actor?: string;
  /** What it belongs to: a request, a workflow. Facts of before have a `request` or a `topup` instead. */
  readonly $correlationId?: string;
  /** What directly led to it: a fact, a request. That to which it belongs, where it is left out. */
  readonly $causationId?: string;
  readonly [name: string]: string | number | undefined;
}

/** A fact that is about to be appended. The id is ours, so that the same append can be sent again. */
export interface NewEvent {
  readonly id: string;
  readonly type: string;
  readonly data: unknown;
  readonly metadata: Metadata;
}

/** A fact as the event store gives it back. */
export type StoredEvent<E extends Message = Message> = E & {
  readonly id: string;
  readonly stream: string;
  /** Place in its stream, from 0. */
  readonly revision: number;
  /** Place in the order of all facts; grows, with gaps. */
  readonly position: bigint;
  /** Booking time, ISO 8601; the time of the event itself is in its data. */
  readonly recordedAt: string;
  readonly metadata: Metadata;
};
