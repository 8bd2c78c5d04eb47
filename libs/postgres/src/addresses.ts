/**
 * The addresses of databases while their credentials are exchanged. An address may be two, separated by white space: the
 * same database with the old and the new credential. The server may accept only one of them at a time.
 */
import pg from 'pg';

/** Class of SQLSTATE codes: invalid authorization. */
const INVALID_AUTHORIZATION = '28';

interface AddressState {
  readonly candidates: readonly string[];
  /** Index of the candidate for the next connection. */
  next: number;
}

/** By the address with which the process started, which all of its parts know. */
const states = new Map<string, AddressState>();

/**
 * From now on, connections to `original` are opened with another address of the same database. Open connections remain
 * in use: the server has authenticated them.
 */
export function replaceDatabaseAddress(original: string, replacement: string): void {
  const candidates = listAddresses(replacement);
  if (candidates.join(' ') !== getState(original).candidates.join(' ')) states.set(original, { candidates, next: 0 });
}

/** Returns whether addresses differ only in their credentials and parameters. */
export function areOfSameDatabase(addresses: readonly string[]): boolean {
  return new Set(addresses.map((one) => new URL(one)).map(({ host, pathname }) => host + pathname)).size === 1;
}

/** Returns the addresses of a setting, one for each credential. */
export function listAddresses(setting: string): readonly string[] {
  return setting.trim().split(/\s+/);
}

/** Returns how often an attempt to connect is worth a repetition with another credential. */
export function countAlternatives(original: string): number {
  return getState(original).candidates.length - 1;
}

export function isCredentialRejected(error: unknown): boolean {
  return String((error as { readonly code?: unknown } | null)?.code).startsWith(INVALID_AUTHORIZATION);
}

function getState(original: string): AddressState {
  const state = states.get(original) ?? { candidates: listAddresses(original), next: 0 };
  states.set(original, state);
  return state;
}

/** An address would overrule the name of a connection, by which running processes are found. */
function removeName(address: string): string {
  const url = new URL(address);
  if (!url.searchParams.has('application_name')) return address;
  url.searchParams.delete('application_name');
  return url.href;
}

type ConnectCallback = (error: Error) => void;

/** A connection with the current credential. If the server rejects it, later connections use the next one. */
export class CredentialClient extends pg.Client {
  private readonly original: string;
  private readonly address: string;

  constructor(config: pg.ClientConfig) {
    const { connectionString: original = '' } = config;
    const { candidates, next } = getState(original);
    const address = candidates[next] ?? original;
    super({ ...config, connectionString: removeName(address) });
    this.original = original;
    this.address = address;
  }

  override connect(): Promise<pg.Client>;
  override connect(callback: ConnectCallback): void;
  override connect(callback?: ConnectCallback): Promise<pg.Client> | undefined {
    if (!callback)
      return new Promise((resolve, reject) => this.connect((error) => (error ? reject(error) : resolve(this))));
    super.connect((error: Error) => {
      this.recordRejection(error);
      callback(error);
    });
    return undefined;
  }

  /** Other connections that were rejected at the same time do not change the candidate again. */
  private recordRejection(error: unknown): void {
    const state = getState(this.original);
    if (!isCredentialRejected(error) || state.candidates[state.next] !== this.address) return;
    state.next = (state.next + 1) % state.candidates.length;
  }
}

type PoolCallback = Parameters<pg.Pool['connect']>[0];

/** A pool that repeats a rejected attempt to connect with the other credential. */
export class CredentialPool extends pg.Pool {
  constructor(private readonly config: pg.PoolConfig) {
    super({ ...config, Client: CredentialClient as typeof pg.Client });
  }

  override connect(): Promise<pg.PoolClient>;
  override connect(callback: PoolCallback): void;
  override connect(callback?: PoolCallback): Promise<pg.PoolClient> | undefined {
    if (!callback)
      return new Promise((resolve, reject) =>
        this.connect((error, client) => (client ? resolve(client) : reject(error as Error))),
      );
    this.connectRepeatedly(countAlternatives(this.config.connectionString ?? ''), callback);
    return undefined;
  }

  private connectRepeatedly(repetitions: number, callback: PoolCallback): void {
    super.connect((error, client, done) => {
      if (repetitions > 0 && isCredentialRejected(error)) this.connectRepeatedly(repetitions - 1, callback);
      else callback(error, client, done);
    });
  }
}
