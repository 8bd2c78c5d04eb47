import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { EventStoreDBClient, jsonEvent, NO_STREAM } from '@eventstore/db-client';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { EventStoreDbEventStore, grantEventStoreDbAccess } from '#eventstore';
import { createSelfSignedCertificate, FakeEventStoreDb } from '#testing';

const ADMIN = { username: 'admin', password: 'changeit' };

describe('a server with TLS and users', () => {
  let directory: string;
  let double: FakeEventStoreDb;
  let client: EventStoreDBClient;

  const addressFor = (user: string) => {
    const caFile = encodeURIComponent(path.join(directory, 'ca.crt'));
    const named = double.connectionString.replace('127.0.0.1', 'localhost'); // as TLS names servers
    return `${named.replace('://', `://${user}@`)}&tlsCAFile=${caFile}`;
  };

  beforeEach(async () => {
    directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-grant-'));
    const certificate = await createSelfSignedCertificate();
    await writeFile(path.join(directory, 'ca.crt'), certificate.cert);
    double = await FakeEventStoreDb.start({ certificate });
    client = Object.assign(EventStoreDBClient.connectionString(addressFor('admin:changeit')), {
      supports: async () => false,
    });
  });

  afterEach(async () => {
    await client.dispose();
    double.stop();
    await rm(directory, { recursive: true });
  });

  /** Checks the access of a user, as a process does when it starts. */
  async function check(user: string): Promise<void> {
    const store = new EventStoreDbEventStore({ connectionString: addressFor(user), streamPrefixes: ['account-'] });
    await store.check().finally(() => store.close());
  }

  async function metadata(): Promise<unknown[]> {
    const written: unknown[] = [];
    for await (const { event } of client.readStream('$$$all')) written.push(event?.data);
    return written;
  }

  test('allows a separate user to start a process only after access was granted', async () => {
    await expect(check('countinghouse:secret')).rejects.toThrow('rejects the credentials in EVENTSTORE_URL');
    double.users.passwords.set('countinghouse', 'secret');
    await expect(check('countinghouse:secret')).rejects.toThrow('does not allow its user to read $all: give it one of');
    await grantEventStoreDbAccess(addressFor('countinghouse:secret'), ADMIN);
    await check('countinghouse:secret');
  });

  test('accepts calls with replaced credentials, without another connection', async () => {
    await grantEventStoreDbAccess(addressFor('countinghouse:before'), ADMIN);
    const options = { connectionString: addressFor('countinghouse:before'), streamPrefixes: ['account-'] };
    const store = new EventStoreDbEventStore(options);
    await store.check();

    double.users.passwords.set('countinghouse', 'after');
    await expect(store.check()).rejects.toThrow('rejects the credentials in EVENTSTORE_URL');
    store.replaceCredentials(addressFor('countinghouse:after'));

    await store.check();
    await store.close();
  });

  test('grants access once if the grant is repeated, and sets the password of the connection string', async () => {
    await grantEventStoreDbAccess(addressFor('countinghouse:first'), ADMIN);
    await grantEventStoreDbAccess(addressFor('countinghouse:first'), ADMIN);
    await grantEventStoreDbAccess(addressFor('countinghouse:s%3Acond'), ADMIN);
    expect(await metadata()).toEqual([{ $acl: { $r: ['$admins', 'countinghouse'] } }]);
    expect(double.users.passwords.get('countinghouse')).toBe('s:cond');
    await expect(check('countinghouse:first')).rejects.toThrow('rejects the credentials');
  });

  test('preserves other readers and other metadata of $all', async () => {
    const data = { team: 'books', $acl: { $r: 'auditor', $mr: 'auditor' } };
    await client.appendToStream('$$$all', jsonEvent({ type: '$metadata', data }), { expectedRevision: NO_STREAM });
    await grantEventStoreDbAccess(addressFor('countinghouse:secret'), ADMIN);
    const granted = { team: 'books', $acl: { $r: ['auditor', 'countinghouse'], $mr: 'auditor' } };
    expect(await metadata()).toEqual([data, granted]);
  });

  test('grants nothing if the administrator is invalid, lacks rights or is the user, or without a server', async () => {
    double.users.passwords.set('other', 'known');
    const address = addressFor('countinghouse:secret');
    const [wrong, other] = [
      { ...ADMIN, password: 'wrong' },
      { username: 'other', password: 'known' },
    ];
    await expect(grantEventStoreDbAccess(address, wrong)).rejects.toMatchObject({
      name: 'EventStoreAccessError',
      message: 'rejects the password of admin',
    });
    await expect(grantEventStoreDbAccess(address, other)).rejects.toThrow('does not allow other to create users');
    await expect(grantEventStoreDbAccess(addressFor('admin:new'), ADMIN)).rejects.toThrow('has no separate user');
    double.stop();
    await expect(grantEventStoreDbAccess(address, ADMIN)).rejects.toMatchObject({ name: 'StoreUnavailableError' });
  });
});
