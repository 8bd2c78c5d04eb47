export { WRITE_CONTRACT } from './contract.ts';
export { formatEventStoreDbNodes, parseEventStoreDbAddress } from './eventstoredb/address.ts';
export { EventStoreAccessError } from './eventstoredb/connection.ts';
export { EventStoreDbEventStore, type EventStoreDbOptions } from './eventstoredb/eventstoredb-event-store.ts';
export { grantEventStoreDbAccess } from './eventstoredb/grant.ts';
export { MemoryEventStore } from './memory-event-store.ts';
export {
  type ClosableEventStore,
  type EventStoreAddress,
  type OpenedEventStore,
  openEventStore,
} from './open-event-store.ts';
export { PostgresCheckpoints, PostgresSnapshots } from './postgres/caches.ts';
export { PostgresEventStore } from './postgres/postgres-event-store.ts';
export { APPEND_LOCK_ID, eventStoreMigrations } from './postgres/schema.ts';
export { PostgresWorkflowSchedule } from './postgres/workflow-schedule.ts';
