import type { LeaseTable } from '../../../foundation/src/lease.ts';
import type { SimulatedProcess } from './simulated-process.ts';

/** A connection of a process to the database. Its existence shows other processes that the process is alive. */
interface Connection {
  readonly process: SimulatedProcess;
  /** Called in the process when the connection is lost. */
  readonly onLost: (error: unknown) => void;
  isOpen: boolean;
}

interface Row {
  /** The highest token that was given out. */
  highestToken: number;
  /** The token of the holder. */
  held: number;
  /** The connection over which the holder acquired or last renewed the lease. */
  connection: Connection | undefined;
  endsAtMs: number;
}

/**
 * The leases of all processes in memory. `competeForLease` uses them as it uses those in PostgreSQL. Each call is done
 * at once, so it is atomic like a statement of the database.
 */
export class MemoryLeases {
  private readonly rows = new Map<string, Row>();
  private readonly connections = new Set<Connection>();

  /** @param getTimeMs returns the time of the clock of the database, in milliseconds since 1970 */
  constructor(private readonly getTimeMs: () => number) {}

  /**
   * Returns the table as a process reaches it over one connection, which is opened again after each loss.
   * @param onLost called in the process when the connection is lost
   */
  open(process: SimulatedProcess, onLost: (error: unknown) => void): LeaseTable {
    let connection: Connection | undefined;
    const connect = () => {
      if (!connection?.isOpen) {
        connection = { process, onLost, isOpen: true };
        this.connections.add(connection);
      }
      return connection;
    };
    return {
      acquire: async (name, durationMs, handicapMs) => this.acquire(name, connect(), { durationMs, handicapMs }),
      renew: async (name, token, durationMs) => {
        const row = this.getRow(name);
        const user = connect();
        if (row.held !== token) return false;
        Object.assign(row, { connection: user, endsAtMs: this.getTimeMs() + durationMs });
        return true;
      },
      release: async (name, token) => {
        const row = this.getRow(name);
        if (row.held === token) row.endsAtMs = this.getTimeMs();
      },
      close: async () => {
        if (connection) this.close(connection);
      },
    };
  }

  /**
   * Ends the connections of a process that is alive. Others can acquire its leases at once, while it still relies on
   * them until it runs again.
   */
  disconnect(process: SimulatedProcess): void {
    for (const connection of this.connections) {
      if (connection.process !== process) continue;
      this.close(connection);
      process.deliver(() => connection.onLost(new Error('the connection to the database has ended')));
    }
  }

  /** Issues a token that is higher than that of the current holder, without acquiring the lease. */
  issueFencingToken(name: string): number {
    const row = this.getRow(name);
    row.highestToken = Math.max(row.highestToken + 1, Math.round(this.getTimeMs() * 1_000));
    return row.highestToken;
  }

  /** Returns those of the leases that no process holds. */
  listUnheldLeases(names: readonly string[]): readonly string[] {
    return names.filter((name) => this.getRow(name).endsAtMs <= this.getTimeMs());
  }

  private acquire(
    name: string,
    connection: Connection,
    { durationMs, handicapMs }: { readonly durationMs: number; readonly handicapMs: number },
  ): number | undefined {
    const row = this.getRow(name);
    const nowMs = this.getTimeMs();
    const hasHolder = row.connection !== undefined && isConnected(row.connection);
    const isFree = row.endsAtMs <= nowMs - handicapMs || (handicapMs === 0 && !hasHolder);
    if (!isFree) return undefined;
    const held = this.issueFencingToken(name);
    Object.assign(row, { held, connection, endsAtMs: nowMs + durationMs });
    return held;
  }

  private close(connection: Connection): void {
    connection.isOpen = false;
    this.connections.delete(connection);
  }

  private getRow(name: string): Row {
    const existing = this.rows.get(name);
    if (existing) return existing;
    const row = { highestToken: 0, held: 0, connection: undefined, endsAtMs: Number.NEGATIVE_INFINITY };
    this.rows.set(name, row);
    return row;
  }
}

/** The death of a process ends its connections, unless its host dies too. */
function isConnected({ isOpen, process }: Connection): boolean {
  return isOpen && !process.hasDisconnected;
}
