export { createClient, openPool, type PgConnectionOptions, type PgPoolOptions } from './connections.ts';
export { Listener, type ListenerOptions, toNotifyQuery } from './listener.ts';
