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
/** Roles that may read `$all` if its metadata has no read roles. */
const DEFAULT_READ_ROLES = ['$admins'];

type UsersClient = InstanceType<typeof usersService.UsersClient>;
type DoneCallback = (error: Error | null) => void;

/** Internal methods with which the client implements its commands. It has no public commands for users. */
interface ClientInternals {
  execute(
    service: typeof usersService.UsersClient,
    name: string,
    call: (users: UsersClient) => Promise<void>,
  ): Promise<void>;
  callArguments(options: { credentials: Credentials }): [never, never];
}

/**
 * Creates the user of `connectionString` and allows it to read `$all`. Only an administrator can do this. The server's
 * default ACL already allows every user to read and append to the streams of this installation. Idempotent: an existing
 * user gets the password of the connection string. Other readers and other metadata of `$all` do not change.
 * @throws RangeError if the connection string has no user other than the administrator; EventStoreAccessError if the
 *   server rejects the administrator or denies the administrator these rights; StoreUnavailableError if the server does
 *   not respond
 */
export async function grantEventStoreDbAccess(connectionString: string, admin: Credentials): Promise<void> {
  const user = parseConnectionString(connectionString).defaultCredentials;
  if (!user || user.username === admin.username) throw new RangeError('the connection string has no separate user');
  const client = connect(connectionString);
  try {
    await createUser(client, user, admin);
    await grantReadAll(client, user.username, admin);
  } catch (error) {
    const reason = toStoreError('the event store did not respond', error);
    if (!(reason instanceof AccessDeniedError)) throw reason;
    const what = reason.code === UNAUTHENTICATED ? 'rejects the password of' : 'does not allow';
    const rest = reason.code === UNAUTHENTICATED ? '' : ' to create users and grant them rights';
    throw new EventStoreAccessError(`${what} ${admin.username}${rest}`, { cause: error });
  } finally {
    await client.dispose();
  }
}

/**
 * Creates a user, or sets the password of an existing one. If the password is the same, the server accepts the creation
 * of an existing user.
 */
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

/**
 * Adds a user to the readers of `$all`, unless the user is one. The other metadata is written again, because every
 * write replaces all metadata of a stream.
 */
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
 * Reads the last metadata event directly, because the client's `getStreamMetadata` does not return the revision, and
 * drops unknown fields of the ACL. The loop consumes the stream to its end, because closing the client waits for that.
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
