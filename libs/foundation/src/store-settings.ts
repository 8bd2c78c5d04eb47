/** Settings of the databases and of the master keys. */
import { z } from 'zod';
import { parseEventStoreDbAddress } from '#eventstore';
import { areOfSameDatabase, listAddresses } from '#postgres';
import {
  allowFile,
  choice,
  keyRing,
  optional,
  removeTrailingSlashes,
  requireStart,
  type Setting,
} from './setting-types.ts';

const MAX_DATABASE_ADDRESSES = 2;
const POSTGRES_ADDRESSES = z.array(z.url({ protocol: /^postgres(ql)?$/ }));

/** An address of PostgreSQL, or two addresses of the same database with different credentials. */
function databaseAddress(variable: string, meaning: string): Setting<string> {
  const schema = z
    .string()
    .refine(
      (value) => POSTGRES_ADDRESSES.safeParse(listAddresses(value)).success,
      requireStart('postgres://', 'postgresql://'),
    )
    .refine((value) => {
      const addresses = listAddresses(value);
      return addresses.length <= MAX_DATABASE_ADDRESSES && areOfSameDatabase(addresses);
    }, 'must be one address, or two addresses of the same database that differ only in their credentials')
    .transform(removeTrailingSlashes);
  return allowFile({ variable, meaning, defaultValue: '', schema });
}

const EVENT_STORE_ADDRESS = z
  .string()
  .regex(/^esdb(\+discover)?:\/\//, requireStart('esdb://', 'esdb+discover://'))
  .superRefine((value, context) => {
    const address = parseEventStoreDbAddress(value);
    if (typeof address === 'string') context.addIssue(address);
  })
  .transform(removeTrailingSlashes);

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
    allowFile({
      variable: 'EVENTSTORE_URL',
      meaning: 'Address of EventStoreDB, nodes separated by commas; unset: the event store in PostgreSQL',
      defaultValue: '',
      schema: EVENT_STORE_ADDRESS,
    }),
  ),
  masterKeys: optional(
    keyRing(
      'MASTER_KEY',
      32,
      'Key that seals and hashes secrets: 64 hexadecimal digits, the same for every process; of several keys, separated by commas, the first one is used for new secrets; unset: master.key in DATA_DIR, which is generated if there is none',
    ),
  ),
};
