/** Settings of the databases and of the master keys. */
import { parseEventStoreDbAddress } from '#eventstore';
import { areOfSameDatabase, listAddresses } from '#postgres';
import { address, allowFile, choice, keyRing, optional, type Setting } from './setting-types.ts';

const MAX_DATABASE_ADDRESSES = 2;

/** An address of PostgreSQL, or two addresses of the same database with different credentials. */
function databaseAddress(variable: string, meaning: string): Setting<string> {
  const protocols = ['postgres:', 'postgresql:'];
  const validate = (value: string) => {
    const addresses = listAddresses(value);
    if (!addresses.every((one) => URL.canParse(one) && protocols.includes(new URL(one).protocol))) return false;
    const isValid = addresses.length <= MAX_DATABASE_ADDRESSES && areOfSameDatabase(addresses);
    return (
      isValid || 'must be one address, or two addresses of the same database that differ only in their credentials'
    );
  };
  return allowFile(address({ variable, protocols, meaning, defaultValue: '', validate }));
}

export const STORE_SETTINGS = {
  databaseUrl: optional(databaseAddress('DATABASE_URL', 'Address of PostgreSQL; unset: an embedded one in DATA_DIR')),
  contentDatabaseUrl: optional(
    databaseAddress(
      'CONTENT_DATABASE_URL',
      'Address of another PostgreSQL for stored Responses and responses to requests with an Idempotency-Key; unset: DATABASE_URL',
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
