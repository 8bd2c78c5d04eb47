import { UpstreamFailure } from '#application';

/** The connections that are configured, by the names the catalogue uses for upstreams. */
export class Named<C extends { close(): Promise<void> }> {
  private readonly connections: ReadonlyMap<string, C>;

  constructor(connections: Readonly<Record<string, C>>) {
    this.connections = new Map(Object.entries(connections));
  }

  /** @throws UpstreamFailure when there is none of this name */
  get(upstream: string): C {
    const connection = this.connections.get(upstream);
    if (connection) return connection;
    throw new UpstreamFailure('upstream_unavailable', `The upstream "${upstream}" is not configured`);
  }

  async close(): Promise<void> {
    await Promise.all([...this.connections.values()].map((connection) => connection.close()));
  }
}
