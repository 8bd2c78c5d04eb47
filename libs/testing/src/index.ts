export { eventStoreContract, type Opened } from './contracts/event-store.ts';
export { EventStoreDbDouble } from './eventstoredb-double/eventstoredb-double.ts';
export { decisions, nextSteps } from './given.ts';
export { KeyedRequests } from './keyed-requests.ts';
export { OPENAPI_STRUCTURE } from './openapi-structure.ts';
export { createTestDatabase, type TestDatabase } from './test-database.ts';
export { issuedInvoice, paymentOf } from './top-ups.ts';
export { type Received, Wiretap } from './wiretap.ts';
export { type Answer, type TestAccount, World } from './world.ts';
