/** Settings of the databases and of the master keys. */
import { parseEventStoreDbAddress } from '#eventstore';
import { address, allowFile, choice, keyRing, optional, url } from './setting-types.ts';

export const STORE_SETTINGS = {
  databaseUrl: optional(
    allowFile(
      url('DATABASE_URL', ['postgres:', 'postgresql:'], 'Address of PostgreSQL; unset: an embedded one in DATA_DIR'),
    ),
  ),
  contentDatabaseUrl: optional(
    allowFile(
      url(
        'CONTENT_DATABASE_URL',
        ['postgres:', 'postgresql:'],
        'Address of another PostgreSQL for stored Responses and responses to requests with an Idempotency-Key; unset: DATABASE_URL',
      ),
    ),
  ),
  migrate: choice(
    'MIGRATE',
    ['start', 'command'],
    'start: the first process that starts applies database migrations; command: only "npm run migrate" and the restore of a backup apply them, and processes that start wait for that',
  ),
  eventStoreUrl: optional(
    allowFile(
      address({
        variable: 'EVENTSTORE_URL',
        protocols: ['esdb:', 'esdb+discover:'],
        meaning: 'Address of EventStoreDB, nodes separated by commas; unset: the event store in PostgreSQL',
        defaultValue: '',
        validate(value) {
          if (!/^esdb(\+discover)?:\/\//.test(value)) return false;
          const address = parseEventStoreDbAddress(value);
          return typeof address === 'string' ? address : true;
        },
      }),
    ),
  ),
  masterKeys: optional(
    keyRing(
      'MASTER_KEY',
      32,
      'Key that seals and hashes secrets: 64 hexadecimal digits, the same for every process; of several keys, separated by commas, the first one is used for new secrets; unset: master.key in DATA_DIR, which is generated if there is none',
    ),
  ),
};
