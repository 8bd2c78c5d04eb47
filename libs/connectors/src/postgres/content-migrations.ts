import { idempotencyMigrations } from './idempotency-store.ts';
import { storedBytesMigrations } from './stored-bytes.ts';
import { storedResponseMigrations } from './stored-responses.ts';

/** Migrations of the content database: stored responses, saved responses by idempotency key, and their sizes. */
export const contentMigrations = [...storedResponseMigrations, ...idempotencyMigrations, ...storedBytesMigrations];
