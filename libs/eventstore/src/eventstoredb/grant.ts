import {
  AccessDeniedError,
  BACKWARDS,
  type Credentials,
  convertToCommandError,
  END,
  type EventStoreDBClient,
  jsonEvent,
  LoginConflictError,
  NO_STREAM,
  StreamNotFoundError,
} from '@eventstore/db-client';
import { parseConnectionString } from '@eventstore/db-client/dist/Client/parseConnectionString.js';
import usersService from '@eventstore/db-client/generated/users_grpc_pb.js';
import users from '@eventstore/db-client/generated/users_pb.js';
import { connect, EventStoreAccessError, toStoreError, UNAUTHENTICATED } from './connection.ts';

const ALL_METADATA_STREAM = '$$$all';
/** Who may read `$all` where nothing is said about it. */
const DEFAULT_READ_ROLES = ['$admins'];

type UsersClient = InstanceType<typeof usersService.UsersClient>;
type DoneCallback = (error: Error | null) => void;

/** Internal calls of the client, by which its own commands are made; it has none for users. */
interface ClientInternals {
  execute(
    service: typeof usersService.UsersClient,
    name: string,
    call: (users: UsersClient) => Promise<void>,
  ): Promise<void>;
  callArguments(options: { credentials: Credentials }): [never, never];
}

/**
 * Makes the user that `connectionString` names, and lets it read `$all`, which takes an administrator; to streams of ours it may
 * append, and read them, where the server's default ACL is as it came. To do it again changes nothing. A user that is there gets the
 * password of the connection string. Whoever else may read `$all`, and what else is in its metadata, stays.
 * @throws RangeError without a user of its own; EventStoreAccessError; StoreUnavailableError
 */
export async function grantEventStoreDbAccess(connectionString: string, admin: Credentials): Promise<void> {
  const user = parseConnectionString(connectionString).defaultCredentials;
  if (!user || user.username === admin.username) throw new RangeError('the connection string names no user of its own');
  const client = connect(connectionString);
  try {
    await createUser(client, user, admin);
    await grantReadAll(client, user.username, admin);
  } catch (error) {
    const reason = toStoreError('the event store did not answer', error);
    if (!(reason instanceof AccessDeniedError)) throw reason;
    const what = reason.code === UNAUTHENTICATED ? 'refuses the password of' : 'does not let';
    const rest = reason.code === UNAUTHENTICATED ? '' : ' make users and give them rights';
    throw new EventStoreAccessError(`${what} ${admin.username}${rest}`, { cause: error });
  } finally {
    await client.dispose();
  }
}

/** The server takes a user that it has with the same password for made. */
async function createUser(client: EventStoreDBClient, { username, password }: Credentials, admin: Credentials) {
  const inner = client as unknown as ClientInternals;
  const callUsers = (name: string, call: (users: UsersClient, as: [never, never], done: DoneCallback) => void) =>
    inner.execute(usersService.UsersClient, name, (service) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const done: DoneCallback = (error) => (error ? reject(convertToCommandError(error)) : resolve());
      call(service, inner.callArguments({ credentials: admin }), done);
      return promise;
    });
  const createOptions = new users.CreateReq.Options()
    .setLoginName(username)
    .setPassword(password)
    .setFullName(username);
  const reset = new users.ResetPasswordReq.Options().setLoginName(username).setNewPassword(password);
  try {
    await callUsers('create', (service, as, done) =>
      service.create(new users.CreateReq().setOptions(createOptions), ...as, done),
    );
  } catch (error) {
    if (!(error instanceof LoginConflictError)) throw error;
    await callUsers('resetPassword', (service, as, done) =>
      service.resetPassword(new users.ResetPasswordReq().setOptions(reset), ...as, done),
    );
  }
}

/** Metadata is replaced as a whole, so what is there is written again with it. */
async function grantReadAll(client: EventStoreDBClient, username: string, credentials: Credentials): Promise<void> {
  const last = await loadLastMetadata(client, credentials);
  const { $acl, ...rest } = last?.data ?? {};
  const readers = [$acl?.$r ?? DEFAULT_READ_ROLES].flat();
  if (readers.includes(username)) return;
  const metadata = { ...rest, $acl: { ...$acl, $r: [...readers, username] } };
  await client.appendToStream(ALL_METADATA_STREAM, jsonEvent({ type: '$metadata', data: metadata }), {
    expectedRevision: last?.revision ?? NO_STREAM,
    requiresLeader: true,
    credentials,
  });
}

/**
 * The client's own `getStreamMetadata` does not know the revision, and drops what it does not know of a stream's ACL. A read is
 * read to its end: closing the client waits for it.
 */
async function loadLastMetadata(client: EventStoreDBClient, credentials: Credentials) {
  const options = { direction: BACKWARDS, fromRevision: END, maxCount: 1, requiresLeader: true, credentials } as const;
  const read: (Metadata & { readonly revision: bigint })[] = [];
  try {
    for await (const { event } of client.readStream<Metadata>(ALL_METADATA_STREAM, options))
      if (event) read.push(event);
  } catch (error) {
    if (!(error instanceof StreamNotFoundError)) throw error;
  }
  return read[0];
}

interface Metadata {
  readonly type: '$metadata';
  readonly data: { readonly $acl?: { readonly $r?: string | string[] } };
}
