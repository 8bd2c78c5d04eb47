import type { Metadata, StoredEvent } from './message.ts';

/** What led to an event. It is stored in the metadata of the event, so an audit can trace the event to its actor. */
export interface Cause {
  /** The actor of the command, such as `key:…`, `account:…`, `workflow:topups`. */
  readonly actor: string;
  /** Id of the request or other action that started the chain of events; the same for all events of the chain. */
  readonly correlationId: string;
  /** Id of the event or request that directly led to the event. */
  readonly causationId: string;
}

/** Returns the cause of a request, or of any other action that starts a chain of events. */
export function createRootCause(actor: string, id: string): Cause {
  return { actor, correlationId: id, causationId: id };
}

/**
 * Returns the cause of a reaction to an event. The reaction has the correlation id of that event. If the event has no
 * correlation id, the reaction has the id of the event instead.
 */
export function createCauseFromEvent({ id, metadata }: Pick<StoredEvent, 'id' | 'metadata'>, actor: string): Cause {
  return { actor, correlationId: metadata.$correlationId ?? id, causationId: id };
}

/** Uses the names that EventStoreDB's own tools expect. The causation id is omitted if it equals the correlation id. */
export function toMetadata({ actor, correlationId, causationId }: Cause): Metadata {
  return causationId === correlationId
    ? { actor, $correlationId: correlationId }
    : { actor, $correlationId: correlationId, $causationId: causationId };
}
