/** Names of accounts. Each name has a stream, so that no two accounts can have the same one. */
import { type Decider, throwUnknownEvent } from '#kernel';
import type { AccountNamed } from './events.ts';
import { reject } from './rejections.ts';

/** Starts with a letter. No name is a valid id of an account, so a command can accept either. */
const ACCOUNT_NAME_PATTERN = /^[a-z][a-z0-9._-]{0,62}$/i;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export interface NameAccount {
  readonly type: 'NameAccount';
  readonly data: AccountNamed['data'];
}

export function isAccountName(text: string): boolean {
  return ACCOUNT_NAME_PATTERN.test(text) && !UUID.test(text);
}

/** Returns the id of the stream of a name. Names that differ only in case are the same name. */
export function toAccountNameStreamId(name: string): string {
  return name.toLowerCase();
}

/** The state is the account that has the name; null while the name is free. */
export const accountNameDecider: Decider<NameAccount, AccountNamed['data'] | null, AccountNamed> = {
  getInitialState: () => null,
  evolve: (_, event) => (event.type === 'AccountNamed' ? event.data : throwUnknownEvent(event as never)),
  decide({ data }, existing) {
    if (existing === null) return [{ type: 'AccountNamed', data }];
    if (existing.accountId === data.accountId) return [];
    return reject('name_taken', `An account named "${existing.name}" already exists`);
  },
};
