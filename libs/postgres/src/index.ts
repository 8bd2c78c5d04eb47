export { areOfSameDatabase, listAddresses, replaceDatabaseAddress } from './addresses.ts';
export { Batcher } from './batcher.ts';
export { ConnectionProbe } from './connection-probe.ts';
export { connectClient, openPool, type PgConnectionOptions, type PgPoolOptions, withClient } from './connections.ts';
export { Listener, type ListenerOptions, toNotifyQuery } from './listener.ts';
