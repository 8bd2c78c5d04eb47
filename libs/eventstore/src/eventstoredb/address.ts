import type { Credentials } from '@eventstore/db-client';
import { parseConnectionString } from '@eventstore/db-client/dist/Client/parseConnectionString.js';

export interface EventStoreDbAddress {
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  readonly usesTls: boolean;
  readonly credentials: Credentials | undefined;
}

/**
 * Parses a connection string with the parser of the client, because a list of hosts is not a valid URL.
 * @returns the address; the end of an error sentence, without secrets, if the string is invalid or the client would
 *   ignore a part of it
 */
export function parseEventStoreDbAddress(connectionString: string): EventStoreDbAddress | string {
  try {
    const { read, warnings } = captureWarnings(() => parseConnectionString(connectionString));
    const { hosts, tls = true, defaultCredentials: credentials } = read;
    const [warning] = warnings;
    if (warning !== undefined) return `is invalid: ${warning.split('\n')[0]}`;
    if (hosts.some(({ address }) => address.includes('@')))
      return 'is invalid before "@": write a user as user:password@, with %40 for each "@" in it';
    return {
      nodes: hosts.map(({ address, port }) => ({ host: address.toLowerCase(), port })),
      usesTls: tls,
      credentials,
    };
  } catch (error) {
    const { location, expected } = error as { readonly location?: readonly number[]; readonly expected?: string };
    return `is invalid from character ${(location?.[0] ?? 0) + 1} on: expected "${expected}"`;
  }
}

/** Returns the hosts and ports of a connection string, for messages; empty if the string is invalid. */
export function formatEventStoreDbNodes(connectionString: string): string {
  const address = parseEventStoreDbAddress(connectionString);
  return typeof address === 'string' ? '' : address.nodes.map(({ host, port }) => `${host}:${port}`).join(', ');
}

/** Captures the warnings of the client's parser, which would print them on standard error with the password. */
function captureWarnings<T>(read: () => T): { readonly read: T; readonly warnings: readonly string[] } {
  const { warn } = console;
  const warnings: string[] = [];
  console.warn = (message: unknown) => void warnings.push(String(message));
  try {
    return { read: read(), warnings };
  } finally {
    console.warn = warn;
  }
}
