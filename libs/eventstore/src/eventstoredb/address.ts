import { parseConnectionString } from '@eventstore/db-client/dist/Client/parseConnectionString.js';

export interface EventStoreDbAddress {
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  readonly usesTls: boolean;
}

/**
 * What a connection string says, as the client itself reads it: several hosts are no address that others can parse.
 * @returns a sentence's end instead, without any of its secrets, where the client cannot read it, or would pass over a part of it
 */
export function parseEventStoreDbAddress(connectionString: string): EventStoreDbAddress | string {
  try {
    const { read, warnings } = captureWarnings(() => parseConnectionString(connectionString));
    const { hosts, tls = true } = read;
    const [warning] = warnings;
    if (warning !== undefined) return `is not understood: ${warning.split('\n')[0]}`;
    if (hosts.some(({ address }) => address.includes('@')))
      return 'is not understood before "@": a user is written as user:password@, with %40 for each "@" in it';
    return { nodes: hosts.map(({ address, port }) => ({ host: address.toLowerCase(), port })), usesTls: tls };
  } catch (error) {
    const { location, expected } = error as { readonly location?: readonly number[]; readonly expected?: string };
    return `is not understood from character ${(location?.[0] ?? 0) + 1} on, where "${expected}" is expected`;
  }
}

/** The nodes of an address, for a sentence. */
export function formatEventStoreDbNodes(connectionString: string): string {
  const address = parseEventStoreDbAddress(connectionString);
  return typeof address === 'string' ? '' : address.nodes.map(({ host, port }) => `${host}:${port}`).join(', ');
}

/** What the client says of a part that it passes over goes to standard error, with the whole string behind it. */
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
