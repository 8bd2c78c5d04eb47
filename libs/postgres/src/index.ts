export { type Connecting, newClient, openPool, type Pooling } from './connections.ts';
export { Listener, type Listening, notification } from './listener.ts';
