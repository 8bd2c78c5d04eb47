import { parseConnectionString } from '@eventstore/db-client/dist/Client/parseConnectionString.js';

export interface EventStoreDbAddress {
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  readonly hasTls: boolean;
}

/**
 * What a connection string says, as the client itself reads it: several hosts are no address that others can parse.
 * @returns undefined where the client cannot read it
 */
export function eventStoreDbAddress(connectionString: string): EventStoreDbAddress | undefined {
  try {
    const { hosts, tls = true } = parseConnectionString(connectionString);
    return { nodes: hosts.map(({ address, port }) => ({ host: address.toLowerCase(), port })), hasTls: tls };
  } catch {
    return undefined;
  }
}
