import { createServer } from 'node:net';

/** Returns a currently free loopback port for each name. */
export async function allocatePortNumbers<Name extends string>(
  ...names: readonly Name[]
): Promise<Readonly<Record<Name, number>>> {
  const servers = await Promise.all(
    names.map(async (name) => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      return { name, server };
    }),
  );
  const portNumbers = servers.map(({ name, server }) => [name, (server.address() as { port: number }).port]);
  await Promise.all(servers.map(({ server }) => new Promise((resolve) => server.close(resolve))));
  return Object.fromEntries(portNumbers) as Readonly<Record<Name, number>>;
}
