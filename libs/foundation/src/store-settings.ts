/** Settings of what is kept: where it lies, and under which keys. */
import { parseEventStoreDbAddress } from '#eventstore';
import { address, choice, keyRing, optional, url } from './setting-types.ts';

export const STORE_SETTINGS = {
  databaseUrl: optional(url('DATABASE_URL', ['postgres:', 'postgresql:'], 'PostgreSQL; unset: an embedded one')),
  contentDatabaseUrl: optional(
    url(
      'CONTENT_DATABASE_URL',
      ['postgres:', 'postgresql:'],
      'Another PostgreSQL for what lies beside the books: stored Responses and kept answers; unset: the same',
    ),
  ),
  migrate: choice(
    'MIGRATE',
    ['start', 'command'],
    'Who changes the tables of the database for a new version: start: the first role that starts; command: "npm run migrate", and roles do not start before',
  ),
  eventStoreUrl: optional(
    address({
      variable: 'EVENTSTORE_URL',
      protocols: ['esdb:', 'esdb+discover:'],
      meaning: 'EventStoreDB, one node or several with commas between them; unset: the event store in PostgreSQL',
      defaultValue: '',
      validate(value) {
        if (!/^esdb(\+discover)?:\/\//.test(value)) return false;
        const address = parseEventStoreDbAddress(value);
        return typeof address === 'string' ? address : true;
      },
    }),
  ),
  masterKeys: optional(
    keyRing(
      'MASTER_KEY',
      32,
      'Seals and hashes secrets: 64 hexadecimal digits, the same for every process, or several such keys with commas between them, of which the first is used for what is new; unset: made in DATA_DIR',
    ),
  ),
};
