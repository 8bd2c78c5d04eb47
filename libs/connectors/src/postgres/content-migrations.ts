import { idempotencyMigrations } from './idempotency-store.ts';
import { storedBytesMigrations } from './stored-bytes.ts';
import { storedResponseMigrations } from './stored-responses.ts';

/** Of the database of what lies beside the books. */
export const contentMigrations = [...storedResponseMigrations, ...idempotencyMigrations, ...storedBytesMigrations];
