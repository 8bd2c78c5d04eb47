import type { Metadata, StoredEvent } from './message.ts';

/** What led to facts. It is stored beside each of them, so that an audit can go back from any fact to its actor. */
export interface Cause {
  /** The actor of the command, such as `key:…`, `account:…`, `workflow:topups`. */
  readonly actor: string;
  /** What everything that follows from one request or one workflow has in common: its id. */
  readonly correlationId: string;
  /** The id of the fact or the request that directly led to it. */
  readonly causationId: string;
}

/** A request, or something else that begins by itself. */
export function createRootCause(actor: string, id: string): Cause {
  return { actor, correlationId: id, causationId: id };
}

/** A reaction to a fact belongs to what the fact belongs to. */
export function createCauseFromEvent({ id, metadata }: Pick<StoredEvent, 'id' | 'metadata'>, actor: string): Cause {
  return { actor, correlationId: metadata.$correlationId ?? id, causationId: id };
}

/** Under the names that EventStoreDB's own tools look for. What begins by itself belongs to itself: that is said once. */
export function toMetadata({ actor, correlationId, causationId }: Cause): Metadata {
  return causationId === correlationId
    ? { actor, $correlationId: correlationId }
    : { actor, $correlationId: correlationId, $causationId: causationId };
}
