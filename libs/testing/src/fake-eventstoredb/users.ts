import type { CreateReq, ResetPasswordReq } from '@eventstore/db-client/generated/users_pb.js';
import users from '@eventstore/db-client/generated/users_pb.js';
import { type Metadata, type sendUnaryData, status } from '@grpc/grpc-js';
import type { EventLog } from './log.ts';
import { accessDeniedError, createServiceError, unknownUserError } from './wire.ts';

const ADMIN = 'admin';
const ALL = '$all';
const METADATA_PREFIX = '$$';

interface Call<Request> {
  readonly request: Request;
  readonly metadata: Metadata;
}

/**
 * The users of a server and its access rules. By default, system streams such as `$all` are for the administrator.
 * Users may read all other streams and append to them. The metadata of a stream takes precedence. The rules are those
 * of LegacyStreamPermissionAssertion.cs and UserManagementService.cs in EventStoreDB 23.10.6.
 */
export class Users {
  /** Passwords by login. */
  readonly passwords = new Map([[ADMIN, 'changeit']]);

  constructor(private readonly log: EventLog) {}

  /** Returns the error for a call that may not read the stream or append to it; undefined if the call is allowed. */
  findAccessError(metadata: Metadata, action: 'read' | 'append', stream: string) {
    const login = this.findLogin(metadata);
    if (login === undefined) return unknownUserError();
    if (login === ADMIN) return undefined;
    if (stream.startsWith(METADATA_PREFIX)) return accessDeniedError();
    const roles = this.getRoles(action, stream);
    return roles.includes(login) || roles.includes(ALL) ? undefined : accessDeniedError();
  }

  createService() {
    return {
      create: ({ request, metadata }: Call<CreateReq>, callback: sendUnaryData<unknown>) => {
        const options = request.getOptions();
        const [login, password] = [options?.getLoginName() ?? '', options?.getPassword() ?? ''];
        const error = this.findAccessError(metadata, 'append', `$user-${login}`);
        if (error) return callback(error);
        if ((this.passwords.get(login) ?? password) !== password) return callback(userConflictError(login));
        this.passwords.set(login, password);
        callback(null, new users.CreateResp());
      },
      resetPassword: ({ request, metadata }: Call<ResetPasswordReq>, callback: sendUnaryData<unknown>) => {
        const options = request.getOptions();
        const login = options?.getLoginName() ?? '';
        const error = this.findAccessError(metadata, 'append', `$user-${login}`);
        if (error) return callback(error);
        this.passwords.set(login, options?.getNewPassword() ?? '');
        callback(null, new users.ResetPasswordResp());
      },
    };
  }

  private findLogin(metadata: Metadata): string | undefined {
    const [, encoded = ''] = String(metadata.get('authorization')[0] ?? '').split('Basic ');
    const [login = '', password] = Buffer.from(encoded, 'base64').toString('utf8').split(':', 2);
    return password !== undefined && this.passwords.get(login) === password ? login : undefined;
  }

  private getRoles(action: 'read' | 'append', stream: string): readonly string[] {
    const last = this.log.getStream(`${METADATA_PREFIX}${stream}`).at(-1);
    const { $acl } = last ? JSON.parse(Buffer.from(last.data).toString('utf8')) : {};
    return $acl?.[action === 'read' ? '$r' : '$w'] ?? (stream.startsWith('$') ? ['$admins'] : [ALL]);
  }
}

function userConflictError(login: string) {
  return createServiceError(status.FAILED_PRECONDITION, 'Conflict.', {
    exception: 'user-conflict',
    'login-name': login,
  });
}
