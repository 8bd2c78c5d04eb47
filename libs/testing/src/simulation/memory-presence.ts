import type { PresenceTable } from '../../../foundation/src/process-presence.ts';
import type { SimulatedProcess } from './simulated-process.ts';

/** How long an expired row stays in the table. */
const RETENTION_MS = 86_400_000;

interface Row {
  readonly process: SimulatedProcess;
  /** Whether the connection is open over which the process last sent a heartbeat. */
  isConnected: boolean;
  endsAtMs: number;
}

/**
 * The presence of all processes in memory. `ProcessPresence` uses it as it uses that in PostgreSQL. Each call is done at
 * once, so it is atomic like a statement of the database.
 */
export class MemoryPresence {
  private readonly rows = new Map<string, Row>();

  /** @param getTimeMs returns the time of the clock of the database, in milliseconds */
  constructor(private readonly getTimeMs: () => number) {}

  /** Returns the table as a process reaches it. */
  open(process: SimulatedProcess): PresenceTable {
    return {
      record: async (id, durationMs) => {
        this.rows.set(id, { process, isConnected: true, endsAtMs: this.getTimeMs() + durationMs });
      },
      hasDiskSpace: async () => true,
      end: async (id) => {
        const row = this.rows.get(id);
        if (row) row.endsAtMs = this.getTimeMs();
      },
      removeOld: async () => {
        const nowMs = this.getTimeMs();
        for (const [id, { endsAtMs }] of this.rows) if (endsAtMs < nowMs - RETENTION_MS) this.rows.delete(id);
      },
      close: async () => this.disconnect(process),
    };
  }

  /**
   * Ends the connection of a process that is alive, as a query of it that fails does. It seems dead until its next
   * heartbeat, and does not know that.
   */
  disconnect(process: SimulatedProcess): void {
    for (const row of this.rows.values()) if (row.process === process) row.isConnected = false;
  }

  /** Returns the ids of processes that seem dead: their rows have expired, or their connections have ended. */
  async findStaleProcesses(): Promise<readonly string[]> {
    const nowMs = this.getTimeMs();
    return [...this.rows].flatMap(([id, { process, isConnected, endsAtMs }]) =>
      endsAtMs <= nowMs || !isConnected || process.hasDisconnected ? [id] : [],
    );
  }

  hasRow(id: string): boolean {
    return this.rows.has(id);
  }
}
